/* links: shim/launch.c shim/functions.c shim/arguments.c shim/store.c shim/say.c shim/config.c trace/size.c */
#include "shim/arguments.h"
#include "shim/code.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/functions.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct driver driver;

/* The code reader knows nothing but the kernel "known", and says that it writes its first word. */
static const struct code_facts known_code = {.name = "known", .param_count = 2};
static unsigned code_lookups;

const struct code_facts *code_lookup(const void *owner, const char *name)
{
    (void)owner;
    code_lookups++;
    return strcmp(name, "known") == 0 ? &known_code : NULL;
}

bool code_fill_facts(const struct code_facts *facts, uint32_t count, const uint32_t *offsets, const uint32_t *sizes,
                     struct function_facts *out)
{
    assert_ptr_equal(facts, &known_code);
    assert_int_equal(count, 2);
    assert_int_equal(offsets[1], 8);
    assert_int_equal(sizes[1], 4);
    out->is_readable = true;
    out->stored_words[0] = 1;
    return true;
}

static CUdeviceptr pinned[8];
static unsigned pinned_count;

bool engine_owns(CUdeviceptr address)
{
    return address >= 0x1000 && address < 0x2000;
}

CUresult engine_pin(CUdeviceptr address, const char *reason)
{
    assert_non_null(reason);
    pinned[pinned_count++] = address;
    return CUDA_SUCCESS;
}

/* Handles: FUNCTION has a pointer, a 4-byte number and a struct of 24 bytes with a gap before it; KERNEL answers only
 * to cuKernel*; NOTHING has no parameters; SILENT is one that the driver does not explain. */
enum { FUNCTION = 0x100, KERNEL = 0x200, NOTHING = 0x300, SILENT = 0x400, KNOWN = 0x500 };

static unsigned questions;

static CUresult ask(uintptr_t handle, size_t index, size_t *offset, size_t *bytes)
{
    static const size_t offsets[] = {0, 8, 16}, sizes[] = {8, 4, 24};
    size_t count = handle == FUNCTION || handle == KERNEL ? 3 : handle == KNOWN ? 2 : 0;
    questions++;
    if (index >= count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = offsets[index];
    *bytes = sizes[index];
    return CUDA_SUCCESS;
}

static CUresult fake_function_info(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    uintptr_t handle = (uintptr_t)function & ~0xffull;
    if (handle == SILENT)
        return CUDA_ERROR_NOT_SUPPORTED;
    return handle == KERNEL ? CUDA_ERROR_INVALID_HANDLE : ask(handle, index, offset, bytes);
}

static CUresult fake_kernel_info(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    uintptr_t handle = (uintptr_t)kernel & ~0xffull;
    return handle == KERNEL ? ask(handle, index, offset, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult fake_name(const char **name, CUfunction function)
{
    *name = ((uintptr_t)function & ~0xffull) == KNOWN ? "known" : "other";
    return CUDA_SUCCESS;
}

static CUresult fake_module(CUmodule *module, CUfunction function)
{
    *module = (CUmodule)(((uintptr_t)function & 0xff) == 1 ? (void *)0x51 : (void *)0x50);
    return CUDA_SUCCESS;
}

static CUresult fake_library(CUlibrary *library, CUkernel kernel)
{
    *library = (CUlibrary)0x60;
    return ((uintptr_t)kernel & ~0xffull) == KERNEL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int set_up(void **state)
{
    (void)state;
    driver.cuFuncGetParamInfo = fake_function_info;
    driver.cuKernelGetParamInfo = fake_kernel_info;
    driver.cuFuncGetName = fake_name;
    driver.cuFuncGetModule = fake_module;
    driver.cuKernelGetLibrary = fake_library;
    return 0;
}

static CUfunction handle(uintptr_t number)
{
    return (CUfunction)number;
}

static void test_facts(void **state)
{
    (void)state;
    const struct function_facts *facts = launch_facts(handle(FUNCTION));
    assert_true(facts->has_param_info);
    assert_int_equal(facts->param_count, 3);
    assert_int_equal(facts->argument_bytes, 40);
    assert_string_equal(facts->name, "other");
    assert_false(facts->is_readable);
    assert_int_equal(functions_parameters(facts)[2].offset, 16);
    unsigned asked = questions;
    assert_ptr_equal(launch_facts(handle(FUNCTION)), facts);
    assert_int_equal(questions, asked);
    assert_int_equal(launch_facts(handle(KERNEL))->param_count, 3);
    assert_true(launch_facts(handle(NOTHING))->has_param_info);
    assert_int_equal(launch_facts(handle(NOTHING))->argument_bytes, 0);
    assert_false(launch_facts(handle(SILENT))->has_param_info);
}

static void test_code(void **state)
{
    (void)state;
    const struct function_facts *facts = launch_facts(handle(KNOWN));
    assert_true(facts->is_readable);
    assert_int_equal(facts->stored_words[0], 1);
    assert_true(code_lookups > 0);
}

/* After an unload the handle is asked about anew; the old facts stay readable for whoever kept them. */
static void test_forget(void **state)
{
    (void)state;
    const struct function_facts *old = launch_facts(handle(FUNCTION + 1)), *other = launch_facts(handle(FUNCTION));
    functions_forget((void *)0x51);
    assert_ptr_equal(launch_facts(handle(FUNCTION)), other);
    const struct function_facts *now = launch_facts(handle(FUNCTION + 1));
    assert_ptr_not_equal(now, old);
    assert_string_equal(old->name, "other");
    assert_ptr_equal(launch_facts(handle(FUNCTION + 1)), now);
}

static void *look_up_many(void *seen)
{
    const struct function_facts **facts = seen;
    for (uintptr_t i = 0; i < 2000; i++)
        facts[i] = launch_facts(handle(0x100000 + 0x1000 * i + NOTHING));
    return NULL;
}

static void test_threads(void **state)
{
    static const struct function_facts *seen[4][2000];
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_many, seen[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; i++)
        assert_memory_equal(seen[i], seen[0], sizeof seen[0]);
    for (int i = 1; i < 2000; i++)
        assert_ptr_not_equal(seen[0][i], seen[0][i - 1]);
}

static void test_arguments(void **state)
{
    const struct function_facts *facts = launch_facts(handle(FUNCTION));
    uint64_t pointer = 0x1234;
    uint32_t number = 7;
    uint64_t structure[3] = {0x1500, 1, 0x1600};
    void *parameters[] = {&pointer, &number, structure};
    unsigned char block[40], wanted[40] = {0};
    (void)state;
    memcpy(wanted, &pointer, 8);
    memcpy(wanted + 8, &number, 4);
    memcpy(wanted + 16, structure, 24);
    assert_int_equal(arguments_bytes(facts, parameters, NULL), 40);
    memset(block, 0xaa, sizeof block);
    arguments_read(facts, parameters, NULL, block);
    assert_memory_equal(block, wanted, 40); /* gaps are zero: equal launches have equal bytes */

    size_t bytes = 24;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, wanted, CU_LAUNCH_PARAM_END};
    assert_int_equal(arguments_bytes(facts, NULL, extra), 24);
    memset(block, 0, sizeof block);
    arguments_read(facts, NULL, extra, block);
    assert_memory_equal(block, wanted, 24);

    void *strange[] = {(void *)9, &bytes, CU_LAUNCH_PARAM_END}, *half[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL};
    assert_int_equal(arguments_bytes(facts, NULL, strange), -1);
    assert_int_equal(arguments_bytes(facts, NULL, half), -1);
    assert_int_equal(arguments_bytes(launch_facts(handle(SILENT)), parameters, NULL), -1);
    assert_int_equal(arguments_bytes(launch_facts(handle(SILENT)), NULL, NULL), 0);
    assert_int_equal(arguments_bytes(launch_facts(handle(SILENT)), NULL, extra), 24);
    assert_int_equal(arguments_bytes(launch_facts(handle(NOTHING)), NULL, NULL), 0);
    bytes = LAUNCH_MAX_ARGUMENT_BYTES + 1;
    assert_int_equal(arguments_bytes(facts, NULL, extra), -1);
}

static void test_pin_arguments(void **state)
{
    uint64_t pointer = 0x1234, structure[3] = {0x1500, 0x2000, 0x1600};
    uint32_t number = 0x1400; /* not a pointer: too narrow */
    void *parameters[] = {&pointer, &number, structure};
    bool is_read = false;
    (void)state;
    pinned_count = 0;
    assert_int_equal(arguments_pin(handle(FUNCTION), parameters, NULL, "test", &is_read), CUDA_SUCCESS);
    assert_true(is_read);
    /* The gap after the number makes its word look like an address: better one too many than one too few. */
    assert_int_equal(pinned_count, 4);
    assert_int_equal(pinned[0], 0x1234);
    assert_int_equal(pinned[2], 0x1500);
    assert_int_equal(pinned[3], 0x1600);
    pinned_count = 0;
    assert_int_equal(arguments_pin(handle(SILENT), parameters, NULL, "test", &is_read), CUDA_SUCCESS);
    assert_false(is_read);
    assert_int_equal(pinned_count, 0);
}

static struct operation launch_of(unsigned char *block, uint32_t bytes, struct use *uses)
{
    return (struct operation){.kind = OPERATION_LAUNCH,
                              .stream = CU_STREAM_LEGACY,
                              .arguments = block,
                              .argument_bytes = bytes,
                              .uses = uses,
                              .facts = launch_facts(handle(FUNCTION)),
                              .config = {.gridDimX = 2,
                                         .gridDimY = 3,
                                         .gridDimZ = 4,
                                         .blockDimX = 5,
                                         .blockDimY = 6,
                                         .blockDimZ = 7,
                                         .sharedMemBytes = 8,
                                         .hStream = CU_STREAM_LEGACY}};
}

static void test_find_uses(void **state)
{
    static uint64_t block[1200];
    struct use uses[LAUNCH_MAX_USES];
    (void)state;
    block[0] = 0x1000;
    block[1] = 0xfff;
    block[2] = 0x2000;
    block[5] = 0x1fff;
    struct operation operation = launch_of((unsigned char *)block, 48, uses);
    assert_true(launch_find_uses(&operation, 0x1000, 0x2000));
    assert_int_equal(operation.use_count, 2);
    assert_int_equal(uses[0].where, 0);
    assert_int_equal(uses[1].where, 40);
    assert_int_equal(uses[1].address, 0x1fff);
    operation.argument_bytes = 47; /* the last word is cut off */
    assert_true(launch_find_uses(&operation, 0x1000, 0x2000));
    assert_int_equal(operation.use_count, 1);
    assert_true(launch_find_uses(&operation, 0, 0)); /* no arena yet */
    assert_int_equal(operation.use_count, 0);
    for (int i = 0; i < 600; i++)
        block[i] = 0x1800;
    operation.argument_bytes = LAUNCH_MAX_USES * 8;
    assert_true(launch_find_uses(&operation, 0x1000, 0x2000));
    assert_int_equal(operation.use_count, LAUNCH_MAX_USES);
    operation.argument_bytes += 8;
    assert_false(launch_find_uses(&operation, 0x1000, 0x2000));
}

/* Sizes are no addresses, however they look. */
static void test_find_copy_uses(void **state)
{
    struct copy_arguments copy = {0x1800, 0x1900, 0x1a00, COPY_DEVICE_TO_DEVICE, 1};
    struct set_arguments set = {0x1800, 0x1900, 0x1a00, 0x1b00, 4, 0, 0, 0};
    struct use uses[2];
    struct operation operation = {
        .kind = OPERATION_COPY, .arguments = (unsigned char *)&copy, .argument_bytes = sizeof copy, .uses = uses};
    (void)state;
    assert_true(launch_find_uses(&operation, 0x1000, 0x2000));
    assert_int_equal(operation.use_count, 2);
    assert_int_equal(uses[1].where, offsetof(struct copy_arguments, source));
    operation.kind = OPERATION_SET;
    operation.arguments = (unsigned char *)&set;
    operation.argument_bytes = sizeof set;
    assert_true(launch_find_uses(&operation, 0x1000, 0x2000));
    assert_int_equal(operation.use_count, 1);
}

static void test_signature(void **state)
{
    uint64_t block[5] = {0};
    struct use uses[LAUNCH_MAX_USES];
    struct operation one = launch_of((unsigned char *)block, 40, uses), other = one;
    uint64_t first = launch_signature(&one);
    (void)state;
    block[0] = 0x1234;
    other.stream = CU_STREAM_PER_THREAD;
    assert_int_equal(launch_signature(&other), first); /* neither values nor streams */
#define DIFFERS(change)                                                                                                \
    do {                                                                                                               \
        other = one;                                                                                                   \
        change;                                                                                                        \
        assert_int_not_equal(launch_signature(&other), first);                                                         \
    } while (0)
    DIFFERS(other.config.gridDimX++);
    DIFFERS(other.config.gridDimY++);
    DIFFERS(other.config.gridDimZ++);
    DIFFERS(other.config.blockDimX++);
    DIFFERS(other.config.blockDimY++);
    DIFFERS(other.config.blockDimZ++);
    DIFFERS(other.config.sharedMemBytes++);
    DIFFERS(other.argument_bytes -= 8);
    DIFFERS(other.facts = launch_facts(handle(NOTHING)));
#undef DIFFERS
    struct copy_arguments copy = {1, 2, 3, COPY_HOST_TO_DEVICE, 1};
    struct operation copying = {
        .kind = OPERATION_COPY, .arguments = (unsigned char *)&copy, .argument_bytes = sizeof copy};
    first = launch_signature(&copying);
    copy.destination = copy.source = 9;
    assert_int_equal(launch_signature(&copying), first);
    copy.bytes = 4;
    assert_int_not_equal(launch_signature(&copying), first);
    copy.bytes = 3;
    copy.direction = COPY_DEVICE_TO_HOST;
    assert_int_not_equal(launch_signature(&copying), first);
}

static struct {
    unsigned calls, extended_calls;
    CUlaunchConfig config;
    unsigned char bytes[64];
    size_t byte_count;
    CUdeviceptr destination;
    uint64_t source;
    size_t count;
    const char *by;
} issued;

static void note_extra(void **extra)
{
    issued.byte_count = 0;
    if (extra) {
        issued.byte_count = *(size_t *)extra[3];
        memcpy(issued.bytes, extra[1], issued.byte_count);
    }
}

static CUresult fake_launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                            CUstream stream, void **parameters, void **extra)
{
    assert_ptr_equal(function, handle(FUNCTION));
    assert_null(parameters);
    issued.calls++;
    issued.config = (CUlaunchConfig){.gridDimX = grid_x,
                                     .gridDimY = grid_y,
                                     .gridDimZ = grid_z,
                                     .blockDimX = block_x,
                                     .blockDimY = block_y,
                                     .blockDimZ = block_z,
                                     .sharedMemBytes = shared,
                                     .hStream = stream};
    note_extra(extra);
    return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult fake_launch_extended(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    assert_ptr_equal(function, handle(FUNCTION));
    assert_null(parameters);
    issued.extended_calls++;
    issued.config = *config;
    note_extra(extra);
    return CUDA_SUCCESS;
}

static void test_issue_launch(void **state)
{
    uint64_t block[5] = {1, 2, 3, 4, 5}, patched[5] = {1, 2, 99, 4, 5};
    struct use uses[LAUNCH_MAX_USES];
    struct operation operation = launch_of((unsigned char *)block, 40, uses);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
    (void)state;
    driver.cuLaunchKernel = fake_launch;
    driver.cuLaunchKernelEx = fake_launch_extended;
    assert_int_equal(launch_issue(&operation, (unsigned char *)patched), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(issued.calls, 1);
    assert_int_equal(issued.byte_count, 40);
    assert_memory_equal(issued.bytes, patched, 40);
    assert_memory_equal(&issued.config, &operation.config, offsetof(CUlaunchConfig, attrs));
    operation.config.attrs = &attribute;
    operation.config.numAttrs = 1;
    assert_int_equal(launch_issue(&operation, (unsigned char *)block), CUDA_SUCCESS);
    assert_int_equal(issued.extended_calls, 1);
    assert_ptr_equal(issued.config.attrs, &attribute);
    operation.argument_bytes = 0;
    assert_int_equal(launch_issue(&operation, (unsigned char *)block), CUDA_SUCCESS);
    assert_int_equal(issued.byte_count, 0);
}

#define FAKE_COPY(name, type_to, type_from)                                                                            \
    static CUresult fake_##name(type_to to, type_from from, size_t count)                                              \
    {                                                                                                                  \
        issued.destination = (CUdeviceptr)to;                                                                          \
        issued.source = (uint64_t)from;                                                                                \
        issued.count = count;                                                                                          \
        issued.by = #name;                                                                                             \
        return CUDA_SUCCESS;                                                                                           \
    }
#define FAKE_COPY_LATER(name, type_to, type_from)                                                                      \
    static CUresult fake_##name(type_to to, type_from from, size_t count, CUstream stream)                             \
    {                                                                                                                  \
        assert_ptr_equal(stream, CU_STREAM_PER_THREAD);                                                                \
        issued.destination = (CUdeviceptr)to;                                                                          \
        issued.source = (uint64_t)from;                                                                                \
        issued.count = count;                                                                                          \
        issued.by = #name;                                                                                             \
        return CUDA_SUCCESS;                                                                                           \
    }
FAKE_COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
FAKE_COPY(cuMemcpyHtoD_v2_ptds, CUdeviceptr, const void *)
FAKE_COPY(cuMemcpyDtoH_v2, void *, CUdeviceptr)
FAKE_COPY(cuMemcpyDtoD_v2_ptds, CUdeviceptr, CUdeviceptr)
FAKE_COPY_LATER(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
FAKE_COPY_LATER(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
FAKE_COPY_LATER(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

static void test_issue_copies(void **state)
{
    static const struct {
        enum copy_direction direction;
        uint32_t is_synchronous;
        CUstream stream;
        const char *by;
    } cases[] = {
        {COPY_HOST_TO_DEVICE, 1, CU_STREAM_LEGACY, "cuMemcpyHtoD_v2"},
        {COPY_HOST_TO_DEVICE, 1, CU_STREAM_PER_THREAD, "cuMemcpyHtoD_v2_ptds"},
        {COPY_DEVICE_TO_HOST, 1, CU_STREAM_LEGACY, "cuMemcpyDtoH_v2"},
        {COPY_DEVICE_TO_DEVICE, 1, CU_STREAM_PER_THREAD, "cuMemcpyDtoD_v2_ptds"},
        {COPY_HOST_TO_DEVICE, 0, CU_STREAM_PER_THREAD, "cuMemcpyHtoDAsync_v2"},
        {COPY_DEVICE_TO_HOST, 0, CU_STREAM_PER_THREAD, "cuMemcpyDtoHAsync_v2"},
        {COPY_DEVICE_TO_DEVICE, 0, CU_STREAM_PER_THREAD, "cuMemcpyDtoDAsync_v2"},
    };
    (void)state;
    driver.cuMemcpyHtoD_v2 = fake_cuMemcpyHtoD_v2;
    driver.cuMemcpyHtoD_v2_ptds = fake_cuMemcpyHtoD_v2_ptds;
    driver.cuMemcpyDtoH_v2 = fake_cuMemcpyDtoH_v2;
    driver.cuMemcpyDtoD_v2_ptds = fake_cuMemcpyDtoD_v2_ptds;
    driver.cuMemcpyHtoDAsync_v2 = fake_cuMemcpyHtoDAsync_v2;
    driver.cuMemcpyDtoHAsync_v2 = fake_cuMemcpyDtoHAsync_v2;
    driver.cuMemcpyDtoDAsync_v2 = fake_cuMemcpyDtoDAsync_v2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct copy_arguments copy = {11, 22, 33, cases[i].direction, cases[i].is_synchronous};
        struct operation operation = {.kind = OPERATION_COPY,
                                      .stream = cases[i].stream,
                                      .arguments = (unsigned char *)&copy,
                                      .argument_bytes = sizeof copy};
        assert_int_equal(launch_issue(&operation, operation.arguments), CUDA_SUCCESS);
        assert_string_equal(issued.by, cases[i].by);
        assert_int_equal(issued.destination, 11);
        assert_int_equal(issued.source, 22);
        assert_int_equal(issued.count, 33);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),        cmocka_unit_test(test_code),
        cmocka_unit_test(test_forget),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_arguments),    cmocka_unit_test(test_pin_arguments),
        cmocka_unit_test(test_find_uses),    cmocka_unit_test(test_find_copy_uses),
        cmocka_unit_test(test_signature),    cmocka_unit_test(test_issue_launch),
        cmocka_unit_test(test_issue_copies),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
