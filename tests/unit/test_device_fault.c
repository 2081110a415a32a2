/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include "tests/device/fault.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every test has a context of its own: faults are for ever. */
static CUmodule module;

static int own_context(void **state)
{
    (void)state;
    CUcontext context;
    if (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
        return -1;
    return cuModuleLoadData(&module, test_ptx) == CUDA_SUCCESS ? 0 : -1;
}

static int drop_context(void **state)
{
    (void)state;
    CUcontext context;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return -1;
    return cuCtxDestroy_v2(context) == CUDA_SUCCESS ? 0 : -1;
}

static CUresult store(CUdeviceptr address, unsigned blocks)
{
    CUfunction function;
    unsigned value = 5;
    void *params[] = {&address, &value};
    succeeds(cuModuleGetFunction(&function, module, "store"));
    return cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static void everything_answers(CUresult error)
{
    CUdeviceptr memory;
    CUstream stream;
    CUevent event;
    fails(cuCtxSynchronize(), error);
    fails(cuMemAlloc_v2(&memory, 4), error);
    fails(cuStreamCreate(&stream, 0), error);
    fails(cuEventCreate(&event, 0), error);
    fails(cuMemsetD8_v2(8, 0, 1), error);
    fails(cuStreamSynchronize(NULL), error);
    fails(cuStreamQuery(NULL), error);
}

static void a_null_pointer_is_an_illegal_address(void **unused)
{
    (void)unused;
    succeeds(store(0, 1));
    everything_answers(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void freed_memory_is_out_of_reach(void **unused)
{
    (void)unused;
    CUdeviceptr memory;
    succeeds(cuMemAlloc_v2(&memory, 4 * FRAME));
    succeeds(store(memory, 100));
    succeeds(cuCtxSynchronize());
    succeeds(cuMemFree_v2(memory));
    succeeds(store(memory + FRAME, 100));
    everything_answers(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void read_only_means_it(void **unused)
{
    (void)unused;
    CUdeviceptr base;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = device_memory();
    succeeds(cuMemAddressReserve(&base, FRAME, 0, 0, 0));
    succeeds(cuMemCreate(&handle, FRAME, &properties, 0));
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    succeeds(set_access(base, FRAME, CU_MEM_ACCESS_FLAGS_PROT_READ));
    unsigned word;
    succeeds(cuMemcpyDtoH_v2(&word, base, 4));
    succeeds(store(base, 1));
    everything_answers(CUDA_ERROR_ILLEGAL_ADDRESS);
    succeeds(cuMemUnmap(base, FRAME));
    succeeds(cuMemRelease(handle));
    succeeds(cuMemAddressFree(base, FRAME));
}

/* Mapped, but access was never given. */
static void a_copy_faults_too(void **unused)
{
    (void)unused;
    CUdeviceptr base;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = device_memory();
    succeeds(cuMemAddressReserve(&base, FRAME, 0, 0, 0));
    succeeds(cuMemCreate(&handle, FRAME, &properties, 0));
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    char host[8] = "";
    fails(cuMemcpyDtoH_v2(host, base, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
    everything_answers(CUDA_ERROR_ILLEGAL_ADDRESS);
    succeeds(cuMemUnmap(base, FRAME));
    succeeds(cuMemRelease(handle));
    succeeds(cuMemAddressFree(base, FRAME));
}

static void a_fill_of_reserved_space_faults(void **unused)
{
    (void)unused;
    CUdeviceptr base;
    succeeds(cuMemAddressReserve(&base, FRAME, 0, 0, 0));
    succeeds(cuMemsetD8Async(base, 1, FRAME, NULL));
    everything_answers(CUDA_ERROR_ILLEGAL_ADDRESS);
    succeeds(cuMemAddressFree(base, FRAME));
}

static void a_trap_is_its_own_error(void **unused)
{
    (void)unused;
    CUfunction function;
    succeeds(cuModuleGetFunction(&function, module, "die"));
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CUresult error = cuCtxSynchronize();
    assert_true(error == CUDA_ERROR_LAUNCH_FAILED || error == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    everything_answers(error);
}

/* Work that was queued behind the fault does not run, and nothing hangs. */
static void what_follows_is_passed_over(void **unused)
{
    (void)unused;
    CUdeviceptr memory;
    CUevent event;
    uint32_t *pinned;
    succeeds(cuMemAlloc_v2(&memory, 4));
    succeeds(cuMemHostAlloc((void **)&pinned, 4, 0));
    succeeds(cuEventCreate(&event, 0));
    *pinned = 1;
    succeeds(cuStreamWaitValue32_v2(NULL, (CUdeviceptr)pinned, 1, CU_STREAM_WAIT_VALUE_EQ));
    succeeds(cuMemsetD32Async(memory, 1, 1, NULL));
    succeeds(cuMemcpyDtoHAsync_v2(pinned, memory, 4, NULL));
    *pinned = 0;
    succeeds(store(16, 1));
    cuMemsetD32Async((CUdeviceptr)pinned, 77, 1, NULL);
    cuEventRecord(event, NULL);
    __atomic_store_n(pinned, 1, __ATOMIC_RELEASE);
    fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(*pinned, 1);
    fails(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    succeeds(cuEventDestroy_v2(event));
}

static void other_contexts_live_on(void **unused)
{
    (void)unused;
    CUcontext faulty, healthy;
    CUdeviceptr memory;
    unsigned value = 0;
    succeeds(store(0, 1));
    fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    succeeds(cuCtxGetCurrent(&faulty));
    succeeds(cuCtxCreate_v2(&healthy, 0, 0));
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuMemAlloc_v2(&memory, 4));
    succeeds(store(memory, 1));
    succeeds(cuMemcpyDtoH_v2(&value, memory, 4));
    assert_int_equal(value, 5);
    succeeds(cuMemFree_v2(memory));
    succeeds(cuCtxDestroy_v2(healthy));
    succeeds(cuCtxSetCurrent(faulty));
}

static void leave(int number)
{
    (void)number;
    _exit(42);
}

/* Wait status of a child that had `handler` before the driver put its own in front, and then faults. */
static int status_of_faulting_child(void (*handler)(int))
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, handler);
        fault_install();
        volatile uintptr_t nowhere = 8;
        *(volatile int *)nowhere = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void host_faults_stay_host_faults(void **unused)
{
    (void)unused;
    int status = status_of_faulting_child(SIG_DFL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    status = status_of_faulting_child(leave);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void a_forked_child_is_refused(void **unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr memory;
        bool is_refused = cuMemAlloc_v2(&memory, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                          cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
        _exit(is_refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
#define faulting(test) cmocka_unit_test_setup_teardown(test, own_context, drop_context)
    const struct CMUnitTest tests[] = {
        faulting(a_null_pointer_is_an_illegal_address),
        faulting(freed_memory_is_out_of_reach),
        faulting(read_only_means_it),
        faulting(a_copy_faults_too),
        faulting(a_fill_of_reserved_space_faults),
        faulting(a_trap_is_its_own_error),
        faulting(what_follows_is_passed_over),
        faulting(other_contexts_live_on),
        cmocka_unit_test(host_faults_stay_host_faults),
        cmocka_unit_test(a_forked_child_is_refused),
    };
    return cmocka_run_group_tests(tests, start_device, NULL);
}
