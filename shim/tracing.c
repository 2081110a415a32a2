#include "shim/tracing.h"

#include "shim/config.h"
#include "shim/driver.h"
#include "shim/frames.h"
#include "shim/learn.h"
#include "shim/recorder.h"
#include "shim/say.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "shim/inside.h"

#define PROGRAM_NAME_MOST 512
#define POSITIONS_MOST    (1u << 18) /* as many as stats.c remembers */
#define CHARGES_MOST      4096u
#define NAMES_CACHED      1024u /* a power of two */

struct charge {
    uint64_t id, bytes;
    uint32_t what, stack;
};

static struct {
    uint64_t last_id, last_number;
    uint64_t numbers[POSITIONS_MOST]; /* by position of the main lane */
    struct charge charges[CHARGES_MOST];
    uint32_t charge_count;
    uint64_t charged_bytes;
    struct {
        const void *key;
        uint32_t name;
    } names[NAMES_CACHED];
    struct trace_resident told;
    enum phase phase;
    uint32_t set_name, copy_name;
} state;

uint32_t tracing_stack(void)
{
    return recorder_is_wanted() ? recorder_stack() : 0;
}

/* ---- the run ---- */

/* The command line, with blanks between its words; "" if it cannot be read. */
static void read_program(char *out)
{
    int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t count = descriptor < 0 ? 0 : read(descriptor, out, PROGRAM_NAME_MOST - 1);
    if (descriptor >= 0) {
        close(descriptor);
    }
    count = count < 0 ? 0 : count;
    while (count > 0 && out[count - 1] == '\0') {
        count--;
    }
    for (ssize_t i = 0; i < count; i++) {
        out[i] = out[i] == '\0' ? ' ' : out[i];
    }
    out[count] = '\0';
}

void tracing_open(void)
{
    char program[PROGRAM_NAME_MOST], device[256] = "";
    size_t device_bytes = 0;
    CUdevice number;
    struct timespec now;
    if (!recorder_is_wanted()) {
        return;
    }
    read_program(program);
    if (driver.cuCtxGetDevice(&number) != CUDA_SUCCESS ||
        driver.cuDeviceGetName(device, sizeof device - 1, number) != CUDA_SUCCESS ||
        driver.cuDeviceTotalMem_v2(&device_bytes, number) != CUDA_SUCCESS) {
        say(SAY_DEBUG, "trace: the driver did not say what the device is");
    }
    clock_gettime(CLOCK_REALTIME, &now);
    state.copy_name = recorder_name("copy");
    state.set_name = recorder_name("set");
    recorder_open(&(struct trace_run){
        .cap_bytes = config()->cap_bytes,
        .device_bytes = device_bytes,
        .frame_bytes = frames_count().frame_bytes,
        .started_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
        .program = recorder_name(program),
        .device = recorder_name(device),
    });
}

void tracing_finish(void)
{
    recorder_finish();
}

/* Small events: *event is what stands behind the head. */
#define SEND(kind, stack, type, ...)                                                                                   \
    do {                                                                                                               \
        struct type *sent = recorder_event(kind, sizeof *sent, stack);                                                 \
        if (sent != NULL) {                                                                                            \
            struct trace_event head = sent->event;                                                                     \
            *sent = (struct type){head, __VA_ARGS__};                                                                  \
            recorder_commit();                                                                                         \
        }                                                                                                              \
    } while (0)

/* ---- allocations ---- */

static uint64_t send_held(uint64_t address, uint64_t bytes, uint64_t footprint, enum trace_source source, uint32_t what,
                          uint32_t stack)
{
    uint64_t id = ++state.last_id;
    SEND(TRACE_HELD, stack, trace_held, id, address, bytes, footprint, (uint32_t)source, what);
    return id;
}

void tracing_held(struct allocation *allocation, uint32_t stack)
{
    if (recorder_is_open()) {
        allocation->traced =
            send_held(allocation->base, allocation->bytes, space_allocation_footprint(allocation->bytes),
                      space_is_small(allocation->bytes) ? TRACE_SLAB : TRACE_ARENA, 0, stack);
        allocation->stack = stack;
    }
}

void tracing_freed(const struct allocation *allocation)
{
    if (recorder_is_open() && allocation->traced != 0) {
        SEND(TRACE_FREED, 0, trace_freed, allocation->traced);
    }
}

void tracing_own(uint64_t bytes, const char *what)
{
    if (recorder_is_open()) {
        send_held(0, bytes, space_allocation_footprint(bytes), TRACE_OWN, recorder_name(what), 0);
    }
}

static void add_charge(uint64_t bytes, uint32_t what, uint32_t stack)
{
    if (state.charge_count < CHARGES_MOST) {
        uint64_t id = send_held(0, bytes, bytes, TRACE_OUTSIDE, what, stack);
        state.charges[state.charge_count++] = (struct charge){id, bytes, what, stack};
    }
}

static struct charge take_charge(uint32_t index)
{
    struct charge taken = state.charges[index];
    SEND(TRACE_FREED, 0, trace_freed, taken.id);
    for (uint32_t i = index + 1; i < state.charge_count; i++) {
        state.charges[i - 1] = state.charges[i];
    }
    state.charge_count--;
    return taken;
}

static uint64_t whole_frames(uint64_t bytes)
{
    uint64_t frame = frames_count().frame_bytes;
    return (bytes + frame - 1) / frame * frame;
}

void tracing_charged(uint64_t bytes, const char *what, uint32_t stack)
{
    if (recorder_is_open() && bytes > 0) {
        add_charge(whole_frames(bytes), recorder_name(what), stack);
    }
}

/* A charge of that size, or of the newest ones as many as make it up; what is left of the last stays. */
void tracing_refunded(uint64_t bytes)
{
    if (!recorder_is_open()) {
        return;
    }
    bytes = whole_frames(bytes);
    for (uint32_t i = state.charge_count; i-- > 0;) {
        if (state.charges[i].bytes == bytes) {
            take_charge(i);
            return;
        }
    }
    while (bytes > 0 && state.charge_count > 0) {
        struct charge taken = take_charge(state.charge_count - 1);
        if (taken.bytes > bytes) {
            add_charge(taken.bytes - bytes, taken.what, taken.stack);
            return;
        }
        bytes -= taken.bytes;
    }
}

/* ---- operations ---- */

uint64_t tracing_next(void)
{
    return state.last_number + 1;
}

/* Names of kernels stay where they are for ever: they need no second look. */
static uint32_t name_of(const char *name)
{
    uint32_t slot = (uint32_t)(((uintptr_t)name >> 3) * 0x9e3779b97f4a7c15u >> 40) % NAMES_CACHED;
    if (state.names[slot].key != name) {
        state.names[slot].key = name;
        state.names[slot].name = recorder_name(name);
    }
    return state.names[slot].name;
}

static uint32_t kind_of_copy(uint32_t direction)
{
    return direction == COPY_HOST_TO_DEVICE   ? TRACE_COPY_IN
           : direction == COPY_DEVICE_TO_HOST ? TRACE_COPY_OUT
                                              : TRACE_COPY_DEVICE;
}

static void describe(const struct operation *operation, struct trace_ran *ran)
{
    const CUlaunchConfig *config = &operation->config;
    if (operation->kind == OPERATION_COPY) {
        const struct copy_arguments *copy = (const void *)operation->arguments;
        ran->kind = kind_of_copy(copy->direction);
        ran->moved_bytes = copy->bytes;
        ran->name = state.copy_name;
    } else if (operation->kind == OPERATION_SET) {
        const struct set_arguments *set = (const void *)operation->arguments;
        ran->kind = TRACE_SET;
        ran->moved_bytes = set->width * set->height * set->element_bytes;
        ran->name = state.set_name;
    } else {
        ran->kind = TRACE_LAUNCH;
        ran->name = name_of(operation->facts->name);
        ran->shared_bytes = config->sharedMemBytes;
        const uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
        const uint32_t block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
        __builtin_memcpy(ran->grid, grid, sizeof grid);
        __builtin_memcpy(ran->block, block, sizeof block);
    }
}

static uint32_t access_of(const struct touch *touch)
{
    return (touch->is_loaded ? TRACE_MAY_READ : 0u) | (touch->is_stored ? TRACE_MAY_WRITE : 0u) |
           (touch->is_exact ? TRACE_EXACT : 0u) | (touch->is_full_write ? TRACE_WHOLE : 0u) |
           (touch->is_hidden ? TRACE_INDIRECT : 0u);
}

/* What was held before the recorder was open has no id, and is left out. `out` NULL: only counted. */
static uint32_t put_touches(const struct touches *touches, struct trace_touch *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < touches->count && count < TRACE_TOUCH_MOST; i++) {
        uint64_t id = space_get(touches->items[i].allocation)->traced;
        if (id == 0) {
            continue;
        }
        if (out != NULL) {
            out[count] = (struct trace_touch){id, access_of(&touches->items[i]), 0};
        }
        count++;
    }
    return count;
}

static void tell_counters(void)
{
    struct frames_counts frames = frames_count();
    uint64_t resident = (uint64_t)frames.created_frames * frames.frame_bytes;
    uint64_t unused = (uint64_t)frames.free_frames * frames.frame_bytes, demand = space_live_bytes();
    uint64_t outside = (uint64_t)frames.charged_frames * frames.frame_bytes;
    struct trace_resident *told = &state.told;
    if (resident != told->frames_bytes || unused != told->free_bytes || outside != told->outside_bytes ||
        demand != told->demand_bytes) {
        SEND(TRACE_RESIDENT, 0, trace_resident, resident, unused, outside, demand);
        *told = (struct trace_resident){told->event, resident, unused, outside, demand};
    }
}

void tracing_ran(const struct operation *operation, const struct touches *touches, uint32_t stream)
{
    uint64_t number = ++state.last_number;
    if (!recorder_is_open()) {
        return;
    }
    uint32_t count = put_touches(touches, NULL);
    struct trace_ran *ran =
        recorder_event(TRACE_RAN, sizeof *ran + count * sizeof(struct trace_touch), operation->stack);
    if (ran != NULL) {
        struct trace_event head = ran->event;
        *ran = (struct trace_ran){.event = head, .number = number, .stream = stream, .touch_count = count};
        describe(operation, ran);
        put_touches(touches, (struct trace_touch *)(void *)(ran + 1));
        recorder_commit();
    }
    tell_counters();
}

void tracing_replayed(const struct script_operation *operation, uint64_t number, uint32_t stream)
{
    if (!recorder_is_open()) {
        return;
    }
    struct trace_ran *ran = recorder_event(TRACE_RAN, sizeof *ran, 0);
    if (ran == NULL) {
        return;
    }
    struct trace_event head = ran->event;
    *ran = (struct trace_ran){
        .event = head,
        .number = number,
        .moved_bytes = operation->moved_bytes,
        .kind = operation->function != NULL   ? TRACE_LAUNCH
                : operation->moved_bytes != 0 ? kind_of_copy(operation->direction)
                                              : TRACE_SET,
        .name = name_of(operation->name),
        .stream = stream,
        .grid = {operation->grid[0], operation->grid[1], operation->grid[2]},
        .block = {operation->block[0], operation->block[1], operation->block[2]},
        .is_replay = 1,
    };
    recorder_commit();
}

void tracing_timed(uint64_t number, uint64_t nanoseconds)
{
    if (recorder_is_open() && number != 0 && nanoseconds > 1) {
        SEND(TRACE_TIMED, 0, trace_timed, number, nanoseconds);
    }
}

void tracing_moved(enum trace_movement movement, uint64_t id, uint64_t bytes)
{
    if (recorder_is_open()) {
        SEND(TRACE_MOVED, 0, trace_moved, id, bytes, (uint32_t)movement, 0);
    }
}

/* ---- iterations ---- */

static uint32_t phase_in_trace(enum phase phase)
{
    static const uint32_t phases[] = {[PHASE_PASS_THROUGH] = TRACE_PASS_THROUGH,
                                      [PHASE_RECORDING] = TRACE_RECORDING,
                                      [PHASE_PROBATION] = TRACE_PROBATION,
                                      [PHASE_PLANNED] = TRACE_IN_PLAN,
                                      [PHASE_REACTIVE] = TRACE_REACTIVE};
    return phases[phase];
}

void tracing_phase(enum phase phase)
{
    if (recorder_is_open() && phase != state.phase) {
        SEND(TRACE_PHASE, 0, trace_phase_change, phase_in_trace(phase), 0);
        state.phase = phase;
    }
}

void tracing_position(uint64_t position)
{
    if (recorder_is_open()) {
        state.numbers[position % POSITIONS_MOST] = tracing_next();
    }
}

/* Of the operation at this position; the next one's if it has not come, 0 if it is forgotten. */
static uint64_t number_at(uint64_t position)
{
    return state.numbers[position % POSITIONS_MOST];
}

void tracing_iteration(uint64_t index, uint64_t begin, uint64_t end, enum phase phase)
{
    if (!recorder_is_open()) {
        return;
    }
    uint64_t first = number_at(begin), behind = end - begin < POSITIONS_MOST ? number_at(end) : 0;
    behind = behind > first ? behind : tracing_next();
    if (first != 0 && first < behind) {
        SEND(TRACE_BOUNDARY, 0, trace_boundary, index, first, behind, phase_in_trace(phase), 0);
    }
}
