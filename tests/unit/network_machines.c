/* What the small training program runs on. */
#include "tests/unit/network.h"

#include "shim/engine.h"
#include "shim/frames.h"
#include "shim/space.h"
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"

#define ALIGNMENT 512u

/* ---- plain memory ---- */

static struct {
    uint64_t held, peak;
} plain;

/* The size is kept in front of the bytes. */
static bool plain_allocate(uint64_t *address, size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    unsigned char *memory = aligned_alloc(ALIGNMENT, rounded + ALIGNMENT);
    REQUIRE(memory != NULL);
    memcpy(memory, &rounded, sizeof rounded);
    *address = (uint64_t)(uintptr_t)(memory + ALIGNMENT);
    plain.held += rounded;
    plain.peak = plain.held > plain.peak ? plain.held : plain.peak;
    return true;
}

static bool plain_release(uint64_t address)
{
    unsigned char *memory = (unsigned char *)address - ALIGNMENT;
    size_t rounded;
    memcpy(&rounded, memory, sizeof rounded);
    plain.held -= rounded;
    free(memory);
    return true;
}

static bool plain_launch(uint32_t kernel, const void *arguments)
{
    network_kernel(kernel)(arguments);
    return true;
}

static bool plain_copy_in(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)to, from, bytes);
    return true;
}

static bool plain_copy_out(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (const void *)from, bytes);
    return true;
}

static bool plain_copy(uint64_t to, uint64_t from, size_t bytes)
{
    memmove((void *)to, (const void *)from, bytes);
    return true;
}

static bool plain_lane(uint32_t lane)
{
    (void)lane;
    return true;
}

static bool plain_clear(uint64_t address, size_t bytes)
{
    memset((void *)address, 0, bytes);
    return true;
}

static bool plain_clear_rows(uint64_t address, size_t pitch, size_t width, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        memset((void *)(address + row * pitch), 0, width);
    }
    return true;
}

const struct machine *plain_machine(void)
{
    static const struct machine machine = {.allocate = plain_allocate,
                                           .release = plain_release,
                                           .launch = plain_launch,
                                           .copy_in = plain_copy_in,
                                           .copy_out = plain_copy_out,
                                           .copy = plain_copy,
                                           .clear = plain_clear,
                                           .clear_rows = plain_clear_rows,
                                           .lane = plain_lane};
    plain.held = plain.peak = 0;
    return &machine;
}

uint64_t plain_peak_bytes(void)
{
    return plain.peak;
}

/* ---- the engine ---- */

static struct {
    struct engine_machine settings;
    struct machine machine;
    struct function_facts facts[NETWORK_KERNEL_COUNT];
    CUresult error;
    bool is_captured, is_opaque;
} engine;

static bool checked(CUresult result)
{
    if (frames_are_open()) {
        REQUIRE(frames_is_valid());
        REQUIRE(space_is_valid());
    }
    if (engine.settings.cap_bytes != 0) {
        REQUIRE(fake_count().peak_bytes <= engine.settings.cap_bytes);
    }
    if (result != CUDA_SUCCESS) {
        engine.error = result;
    }
    return result == CUDA_SUCCESS;
}

CUresult engine_machine_error(void)
{
    return engine.error;
}

void engine_machine_use_stream(CUstream stream)
{
    engine.settings.stream = stream;
}

void engine_machine_present(bool is_captured, bool is_opaque)
{
    engine.is_captured = is_captured;
    engine.is_opaque = is_opaque;
}

static bool engine_machine_allocate(uint64_t *address, size_t bytes)
{
    CUdeviceptr out = 0;
    bool is_done = checked(engine_allocate(&out, bytes, NULL)) ||
                   (engine.settings.is_retrying && checked(engine_allocate(&out, bytes, NULL)));
    *address = is_done ? out : 0;
    REQUIRE(*address % ALIGNMENT == 0);
    return is_done;
}

static bool engine_machine_release(uint64_t address)
{
    bool is_ours = false;
    CUresult result = engine_free(address, NULL, &is_ours);
    REQUIRE(is_ours);
    return checked(result);
}

static bool submit(struct operation *operation)
{
    struct use uses[LAUNCH_MAX_USES];
    CUdeviceptr begin, end;
    engine_arena(&begin, &end);
    operation->uses = uses;
    operation->stream = engine.settings.stream;
    REQUIRE(launch_find_uses(operation, begin, end));
    return checked(engine_submit(operation)) || (engine.settings.is_retrying && checked(engine_submit(operation)));
}

static CUresult forward_as_it_is(void *call)
{
    const struct operation *operation = call;
    return launch_issue(operation, operation->arguments);
}

static bool engine_machine_launch(uint32_t kernel, const void *arguments)
{
    struct network_arguments block;
    memcpy(&block, arguments, sizeof block);
    struct operation operation = {.kind = OPERATION_LAUNCH,
                                  .arguments = (unsigned char *)&block,
                                  .argument_bytes = sizeof block,
                                  .facts = &engine.facts[kernel],
                                  .config = {.gridDimX = 1,
                                             .gridDimY = 1,
                                             .gridDimZ = 1,
                                             .blockDimX = 1,
                                             .blockDimY = 1,
                                             .blockDimZ = 1,
                                             .hStream = engine.settings.stream},
                                  .is_captured = engine.is_captured,
                                  .is_opaque = engine.is_opaque,
                                  .forward = forward_as_it_is};
    operation.call = &operation;
    return submit(&operation);
}

static bool submit_copy(struct copy_arguments copy)
{
    copy.is_synchronous = engine.settings.stream == CU_STREAM_LEGACY;
    struct operation operation = {.kind = OPERATION_COPY,
                                  .arguments = (unsigned char *)&copy,
                                  .argument_bytes = sizeof copy,
                                  .forward = forward_as_it_is};
    operation.call = &operation;
    return submit(&operation);
}

static bool engine_machine_copy_in(uint64_t to, const void *from, size_t bytes)
{
    return checked(engine_scan(from, bytes, to)) &&
           submit_copy((struct copy_arguments){.destination = to,
                                               .source = (uint64_t)(uintptr_t)from,
                                               .bytes = bytes,
                                               .direction = COPY_HOST_TO_DEVICE});
}

static bool wait_for(CUstream stream)
{
    return checked(engine_after_sync(driver.cuStreamSynchronize(stream)));
}

static bool engine_machine_copy_out(void *to, uint64_t from, size_t bytes)
{
    bool is_done = submit_copy((struct copy_arguments){
        .destination = (uint64_t)(uintptr_t)to, .source = from, .bytes = bytes, .direction = COPY_DEVICE_TO_HOST});
    if (engine.settings.stream != CU_STREAM_LEGACY) {
        bool has_come =
            wait_for(engine.settings.stream) || (engine.settings.is_retrying && wait_for(engine.settings.stream));
        is_done = has_come && is_done;
    }
    return is_done;
}

static bool engine_machine_copy(uint64_t to, uint64_t from, size_t bytes)
{
    return submit_copy(
        (struct copy_arguments){.destination = to, .source = from, .bytes = bytes, .direction = COPY_DEVICE_TO_DEVICE});
}

#define AT_MOST_TWICE(call) ((call) == CUDA_SUCCESS || (call) == CUDA_SUCCESS)

static bool engine_machine_lane(uint32_t lane)
{
    static CUstream streams[2];
    static CUevent event;
    if (streams[0] == NULL) {
        streams[0] = engine.settings.stream;
        streams[1] = fake_stream();
        REQUIRE(AT_MOST_TWICE(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)));
    }
    REQUIRE(AT_MOST_TWICE(driver.cuEventRecord(event, engine.settings.stream)));
    engine.settings.stream = streams[lane];
    REQUIRE(AT_MOST_TWICE(driver.cuStreamWaitEvent(engine.settings.stream, event, 0)));
    return true;
}

static bool submit_set(struct set_arguments set)
{
    struct operation operation = {.kind = OPERATION_SET,
                                  .arguments = (unsigned char *)&set,
                                  .argument_bytes = sizeof set,
                                  .forward = forward_as_it_is};
    operation.call = &operation;
    return submit(&operation);
}

static bool engine_machine_clear(uint64_t address, size_t bytes)
{
    return submit_set((struct set_arguments){.destination = address, .width = bytes, .height = 1, .element_bytes = 1});
}

static bool engine_machine_clear_rows(uint64_t address, size_t pitch, size_t width, size_t rows)
{
    return submit_set((struct set_arguments){
        .destination = address, .pitch = pitch, .width = width, .height = rows, .element_bytes = 1});
}

static void fill_facts(void)
{
    static const struct {
        const char *name;
        uint64_t stored, loaded, nanoseconds;
    } table[] = {
#define K(name, stored, loaded, time) {#name, stored, loaded, time},
        NETWORK_KERNELS(K)
#undef K
    };
    for (uint32_t i = 0; i < NETWORK_KERNEL_COUNT; i++) {
        engine.facts[i] = (struct function_facts){
            .function =
                fake_function(table[i].name, sizeof(struct network_arguments), network_kernel(i), table[i].nanoseconds),
            .name = table[i].name,
            .param_count = 1,
            .argument_bytes = sizeof(struct network_arguments),
            .has_param_info = true,
            .is_readable = engine.settings.is_readable,
            .has_indirect_access = i == NETWORK_change_through || i == NETWORK_read_through,
            .stored_words = {table[i].stored},
            .loaded_words = {table[i].loaded},
        };
    }
}

const struct machine *engine_machine_open(const struct engine_machine *settings)
{
    engine.settings = *settings;
    engine.error = CUDA_SUCCESS;
    fill_facts();
    engine.machine = (struct machine){.allocate = engine_machine_allocate,
                                      .release = engine_machine_release,
                                      .launch = engine_machine_launch,
                                      .copy_in = engine_machine_copy_in,
                                      .copy_out = engine_machine_copy_out,
                                      .copy = engine_machine_copy,
                                      .clear = engine_machine_clear,
                                      .clear_rows = engine_machine_clear_rows,
                                      .lane = engine_machine_lane,
                                      .ended_iteration = settings->ended_iteration};
    return &engine.machine;
}
