/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Host functions append to a journal; `gate` words hold streams back until the test opens them. */
static _Atomic int journal[64];
static _Atomic int written;

static void note(void *number)
{
    journal[atomic_fetch_add(&written, 1)] = (int)(intptr_t)number;
}

static void note_in(CUstream stream, int number)
{
    succeeds(cuLaunchHostFunc(stream, note, (void *)(intptr_t)number));
}

static uint32_t *gates;

static void hold(CUstream stream, size_t gate)
{
    gates[gate] = 0;
    succeeds(cuStreamWaitValue32_v2(stream, (CUdeviceptr)&gates[gate], 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void open_gate(size_t gate)
{
    __atomic_store_n(&gates[gate], 1, __ATOMIC_RELEASE);
}

static void let_time_pass(void)
{
    usleep(20000);
}

static int begin(void **state)
{
    if (start_device(state) != 0)
        return -1;
    return cuMemHostAlloc((void **)&gates, 64, 0) == CUDA_SUCCESS ? 0 : -1;
}

static int reset(void **state)
{
    (void)state;
    written = 0;
    return 0;
}

static void a_stream_keeps_its_order(void **unused)
{
    (void)unused;
    CUstream stream;
    succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    hold(stream, 0);
    for (int i = 0; i < 50; i++)
        note_in(stream, i);
    let_time_pass();
    assert_int_equal(written, 0);
    fails(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    open_gate(0);
    succeeds(cuStreamSynchronize(stream));
    succeeds(cuStreamQuery(stream));
    for (int i = 0; i < 50; i++)
        assert_int_equal(journal[i], i);
    succeeds(cuStreamDestroy_v2(stream));
    fails(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
}

static void the_legacy_stream_waits_for_blocking_ones(void **unused)
{
    (void)unused;
    CUstream blocking, free_one;
    succeeds(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    succeeds(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
    hold(blocking, 0);
    note_in(blocking, 1);
    note_in(NULL, 2);     /* after the blocking stream's 1 */
    note_in(blocking, 3); /* after the legacy stream's 2 */
    note_in(free_one, 4); /* after nothing */
    succeeds(cuStreamSynchronize(free_one));
    let_time_pass();
    assert_int_equal(written, 1);
    assert_int_equal(journal[0], 4);
    open_gate(0);
    succeeds(cuCtxSynchronize());
    assert_int_equal(written, 4);
    for (int i = 1; i < 4; i++)
        assert_int_equal(journal[i], i);
    succeeds(cuStreamDestroy_v2(blocking));
    succeeds(cuStreamDestroy_v2(free_one));
}

static void blocking_streams_wait_for_the_legacy_one(void **unused)
{
    (void)unused;
    CUstream blocking, other;
    succeeds(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    succeeds(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    hold(CU_STREAM_LEGACY, 0);
    note_in(blocking, 1);
    note_in(CU_STREAM_PER_THREAD, 2);
    let_time_pass();
    assert_int_equal(written, 0);
    open_gate(0);
    succeeds(cuCtxSynchronize());
    assert_int_equal(written, 2);
    /* Two blocking streams do not wait for each other. */
    hold(blocking, 1);
    note_in(other, 3);
    succeeds(cuStreamSynchronize(other));
    assert_int_equal(journal[2], 3);
    open_gate(1);
    succeeds(cuStreamDestroy_v2(blocking));
    succeeds(cuStreamDestroy_v2(other));
    succeeds(cuCtxSynchronize());
}

static void events_order_streams(void **unused)
{
    (void)unused;
    CUstream first, second;
    CUevent event;
    succeeds(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    succeeds(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    succeeds(cuEventCreate(&event, CU_EVENT_DEFAULT));
    succeeds(cuEventQuery(event));
    succeeds(cuStreamWaitEvent(second, event, 0)); /* never recorded: no wait */
    succeeds(cuStreamSynchronize(second));
    hold(first, 0);
    note_in(first, 1);
    succeeds(cuEventRecord(event, first));
    succeeds(cuStreamWaitEvent(second, event, 0));
    note_in(second, 2);
    /* Recorded again elsewhere: the wait above is still for the record that it saw. */
    succeeds(cuEventRecord(event, NULL));
    succeeds(cuEventSynchronize(event));
    let_time_pass();
    assert_int_equal(written, 0);
    open_gate(0);
    succeeds(cuStreamSynchronize(second));
    assert_int_equal(journal[0], 1);
    assert_int_equal(journal[1], 2);
    succeeds(cuEventDestroy_v2(event));
    fails(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuStreamDestroy_v2(first));
    succeeds(cuStreamDestroy_v2(second));
}

static void events_measure(void **unused)
{
    (void)unused;
    CUevent begins, ends, silent;
    float milliseconds = -1;
    succeeds(cuEventCreate(&begins, 0));
    succeeds(cuEventCreate(&ends, 0));
    succeeds(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
    fails(cuEventElapsedTime(&milliseconds, begins, ends), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuEventRecord(begins, NULL));
    succeeds(cuEventSynchronize(begins));
    hold(NULL, 0);
    succeeds(cuEventRecord(ends, NULL));
    succeeds(cuEventRecord(silent, NULL));
    let_time_pass();
    fails(cuEventElapsedTime(&milliseconds, begins, ends), CUDA_ERROR_NOT_READY);
    open_gate(0);
    succeeds(cuEventSynchronize(silent));
    succeeds(cuEventElapsedTime(&milliseconds, begins, ends));
    assert_true(milliseconds >= 15 && milliseconds < 5000);
    fails(cuEventElapsedTime(&milliseconds, begins, silent), CUDA_ERROR_INVALID_HANDLE);
    fails(cuEventElapsedTime(NULL, begins, ends), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuEventDestroy_v2(begins));
    succeeds(cuEventDestroy_v2(ends));
    succeeds(cuEventDestroy_v2(silent));
    fails(cuEventCreate(&silent, 0x100), CUDA_ERROR_INVALID_VALUE);
}

static void pageable_copies_keep_their_promise(void **unused)
{
    (void)unused;
    CUstream stream;
    CUdeviceptr memory;
    static char pageable[1000], arrived[1000];
    char *pinned;
    succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    succeeds(cuMemAlloc_v2(&memory, 2000));
    succeeds(cuMemHostAlloc((void **)&pinned, 1000, 0));
    memset(pageable, 1, sizeof pageable);
    memset(pinned, 2, 1000);
    hold(stream, 0);
    succeeds(cuMemcpyHtoDAsync_v2(memory, pageable, 1000, stream));
    succeeds(cuMemcpyHtoDAsync_v2(memory + 1000, pinned, 1000, stream));
    memset(pageable, 3, sizeof pageable); /* was staged at the call */
    memset(pinned, 4, 1000);              /* is read when the copy runs */
    open_gate(0);
    succeeds(cuMemcpyDtoHAsync_v2(arrived, memory, 1000, stream));
    assert_int_equal(arrived[999], 1); /* no wait needed: the target is pageable */
    succeeds(cuMemcpyDtoHAsync_v2(arrived, memory + 1000, 1000, stream));
    assert_int_equal(arrived[999], 4);
    succeeds(cuMemFreeHost(pinned));
    succeeds(cuMemFree_v2(memory));
    succeeds(cuStreamDestroy_v2(stream));
}

static void *use_own_stream(void *context)
{
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return NULL;
    unsigned long long id = 0;
    if (cuStreamGetId(CU_STREAM_PER_THREAD, &id) != CUDA_SUCCESS)
        return NULL;
    if (cuLaunchHostFunc_ptsz(NULL, note, (void *)7) != CUDA_SUCCESS)
        return NULL;
    if (cuStreamSynchronize_ptsz(NULL) != CUDA_SUCCESS)
        return NULL;
    return (void *)(uintptr_t)id;
}

static void threads_have_streams_of_their_own(void **unused)
{
    (void)unused;
    CUcontext context;
    unsigned long long mine, legacy;
    succeeds(cuCtxGetCurrent(&context));
    succeeds(cuStreamGetId_ptsz(NULL, &mine));
    succeeds(cuStreamGetId(NULL, &legacy));
    assert_int_not_equal(mine, legacy);
    hold(CU_STREAM_PER_THREAD, 0);
    pthread_t thread;
    void *theirs = NULL;
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, context), 0);
    pthread_join(thread, &theirs);
    assert_non_null(theirs);
    assert_int_not_equal((uintptr_t)theirs, mine);
    assert_int_equal(journal[0], 7);
    open_gate(0);
    succeeds(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void refuses_nonsense(void **unused)
{
    (void)unused;
    CUstream stream;
    fails(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
    fails(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    fails(cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    fails(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuStreamWaitValue32_v2(NULL, 6, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t door_moved = PTHREAD_COND_INITIALIZER;
static bool is_door_open;

/* A host function that waits for what another one, in another stream, is to do. */
static void wait_at_door(void *number)
{
    pthread_mutex_lock(&door);
    while (!is_door_open)
        pthread_cond_wait(&door_moved, &door);
    pthread_mutex_unlock(&door);
    note(number);
}

static void open_door(void *number)
{
    note(number);
    pthread_mutex_lock(&door);
    is_door_open = true;
    pthread_cond_broadcast(&door_moved);
    pthread_mutex_unlock(&door);
}

static void *open_door_after_stream(void *stream)
{
    CUcontext context;
    if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
        cuStreamSynchronize(stream) != CUDA_SUCCESS)
        return NULL;
    open_door((void *)1);
    return stream;
}

static void a_blocked_host_function_stops_its_own_stream_only(void **unused)
{
    (void)unused;
    CUstream waits[3], works;
    CUdeviceptr memory;
    uint32_t value = 0;
    is_door_open = false;
    succeeds(cuMemAlloc_v2(&memory, 64));
    for (int i = 0; i < 3; i++) {
        succeeds(cuStreamCreate(&waits[i], CU_STREAM_NON_BLOCKING));
        succeeds(cuLaunchHostFunc(waits[i], wait_at_door, (void *)(intptr_t)(10 + i)));
        note_in(waits[i], 20 + i);
    }
    succeeds(cuStreamCreate(&works, CU_STREAM_NON_BLOCKING));
    succeeds(cuMemsetD32Async(memory, 7, 16, works));
    succeeds(cuMemcpyDtoHAsync_v2(&value, memory, 4, works));
    succeeds(cuStreamSynchronize(works));
    assert_int_equal(value, 7);
    assert_int_equal(written, 0);
    pthread_t thread;
    void *is_good = NULL;
    assert_int_equal(pthread_create(&thread, NULL, open_door_after_stream, works), 0);
    for (int i = 0; i < 3; i++)
        succeeds(cuStreamSynchronize(waits[i]));
    pthread_join(thread, &is_good);
    assert_non_null(is_good);
    assert_int_equal(written, 7);
    assert_int_equal(journal[0], 1);
    for (int i = 0; i < 3; i++)
        succeeds(cuStreamDestroy_v2(waits[i]));
    succeeds(cuStreamDestroy_v2(works));
    succeeds(cuMemFree_v2(memory));
}

/* The door is opened by a host function behind device work in another stream, which waits for an event. */
static void host_functions_may_wait_for_each_other(void **unused)
{
    (void)unused;
    CUstream first, second;
    CUevent event;
    is_door_open = false;
    succeeds(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    succeeds(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    succeeds(cuEventCreate(&event, 0));
    succeeds(cuEventRecord(event, first));
    succeeds(cuLaunchHostFunc(first, wait_at_door, (void *)2));
    succeeds(cuStreamWaitEvent(second, event, 0));
    succeeds(cuLaunchHostFunc(second, open_door, (void *)1));
    succeeds(cuCtxSynchronize());
    assert_int_equal(written, 2);
    assert_int_equal(journal[0], 1);
    assert_int_equal(journal[1], 2);
    succeeds(cuEventDestroy_v2(event));
    succeeds(cuStreamDestroy_v2(first));
    succeeds(cuStreamDestroy_v2(second));
}

static _Atomic int inner_result;

static void call_driver(void *stream)
{
    inner_result = cuStreamQuery(stream);
}

static void a_host_function_may_not_call_the_driver(void **unused)
{
    (void)unused;
    inner_result = CUDA_SUCCESS;
    succeeds(cuLaunchHostFunc(NULL, call_driver, NULL));
    succeeds(cuCtxSynchronize());
    assert_int_equal(inner_result, CUDA_ERROR_NOT_PERMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_stream_keeps_its_order, reset),
        cmocka_unit_test_setup(the_legacy_stream_waits_for_blocking_ones, reset),
        cmocka_unit_test_setup(blocking_streams_wait_for_the_legacy_one, reset),
        cmocka_unit_test_setup(events_order_streams, reset),
        cmocka_unit_test_setup(events_measure, reset),
        cmocka_unit_test_setup(pageable_copies_keep_their_promise, reset),
        cmocka_unit_test_setup(threads_have_streams_of_their_own, reset),
        cmocka_unit_test_setup(refuses_nonsense, reset),
        cmocka_unit_test_setup(a_blocked_host_function_stops_its_own_stream_only, reset),
        cmocka_unit_test_setup(host_functions_may_wait_for_each_other, reset),
        cmocka_unit_test_setup(a_host_function_may_not_call_the_driver, reset),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
