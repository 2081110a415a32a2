#include "shim/learn.h"

#include "shim/driver.h"
#include "shim/proof.h"
#include "shim/recording.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define MAX_RECORDS        (1u << 20)
#define MAX_RECORD_TOUCHES (1u << 23)
#define MAX_RECORD_USES    (1u << 23)
#define MAX_OBJECTS        (1u << 21)
#define MAX_REJECTED       4096u

static struct recording state;

static bool reserve(void)
{
    if (state.records != NULL) {
        return true;
    }
    state.touches = store_reserve(sizeof *state.touches * MAX_RECORD_TOUCHES, "recorded touches");
    state.uses = store_reserve(sizeof *state.uses * MAX_RECORD_USES, "recorded uses");
    state.objects = store_reserve(sizeof *state.objects * MAX_OBJECTS, "recorded allocations");
    state.events = store_reserve(sizeof *state.events * MAX_RECORDS * 2, "recorded events");
    state.records = store_reserve(sizeof *state.records * MAX_RECORDS, "recorded operations");
    return state.touches != NULL && state.uses != NULL && state.objects != NULL && state.events != NULL &&
           state.records != NULL;
}

const struct recording *learn_recording(void)
{
    return &state;
}

void learn_begin(void)
{
    if (!reserve()) {
        return;
    }
    state.record_count = state.touch_count = state.use_count = state.object_count = 0;
    state.is_on = true;
    state.is_overfull = state.is_outside_foreign = false;
    for (uint32_t i = 0; i < space_count(); i++) {
        space_get(i)->learned = SPACE_NONE;
        space_get(i)->is_foreign = false; /* what matters is who uses it while we record */
    }
    proof_log_reset();
}

bool learn_is_on(void)
{
    return state.is_on;
}

void learn_stop(void)
{
    state.is_on = false;
}

uint32_t learn_count(void)
{
    return state.record_count;
}

static uint32_t new_object(struct allocation *allocation, bool was_there)
{
    if (state.object_count == MAX_OBJECTS) {
        state.is_overfull = true;
        return SPACE_NONE;
    }
    state.objects[state.object_count] = (struct record_object){.bytes = allocation->bytes,
                                                               .born = was_there ? 0 : state.record_count,
                                                               .ended = SCRIPT_NONE,
                                                               .was_there = was_there,
                                                               .is_small = space_is_small(allocation->bytes),
                                                               .allocation = allocation->index,
                                                               .serial = allocation->serial,
                                                               .traced = allocation->traced,
                                                               .stack = allocation->stack};
    return state.object_count++;
}

void learn_allocated(struct allocation *allocation)
{
    if (state.is_on) {
        allocation->learned = new_object(allocation, false);
    }
}

static void note_marks(const struct allocation *allocation)
{
    struct record_object *object = &state.objects[allocation->learned];
    object->is_pinned |= allocation->is_pinned;
    object->is_foreign |= allocation->is_foreign;
}

void learn_freed(struct allocation *allocation)
{
    if (state.is_on && allocation->learned != SPACE_NONE) {
        note_marks(allocation);
        state.objects[allocation->learned].ended = state.record_count;
    }
}

static bool has_room(const struct operation *operation, const struct touches *touches)
{
    return state.record_count < MAX_RECORDS && state.touch_count + touches->count <= MAX_RECORD_TOUCHES &&
           state.use_count + operation->use_count <= MAX_RECORD_USES;
}

static void record_touches(struct record *record, const struct touches *touches, uint32_t stream)
{
    record->first_touch = state.touch_count;
    record->touch_count = touches->count;
    for (uint32_t i = 0; i < touches->count; i++) {
        const struct touch *touch = &touches->items[i];
        struct allocation *allocation = space_get(touch->allocation);
        if (allocation->learned == SPACE_NONE) {
            allocation->learned = new_object(allocation, true);
        }
        struct record_touch *kept = &state.touches[state.touch_count++];
        *kept = (struct record_touch){.object = allocation->learned,
                                      .is_stored = touch->is_stored,
                                      .is_loaded = touch->is_loaded,
                                      .is_exact = touch->is_exact,
                                      .is_full_write = touch->is_full_write,
                                      .is_hidden = touch->is_hidden,
                                      .was_fresh = touch->was_fresh};
        if (kept->object != SPACE_NONE) {
            note_marks(allocation);
        }
        kept->before = proof_log(allocation->base, allocation->bytes, stream);
        kept->after = kept->unwritten = PROOF_NONE;
    }
}

static void record_uses(struct record *record, const struct operation *operation, const struct touches *touches)
{
    record->first_use = state.use_count;
    for (uint32_t i = 0; i < operation->use_count; i++) {
        uint32_t touch = touches->of_use[i];
        if (touch == SCRIPT_NONE) {
            continue;
        }
        const struct allocation *allocation = space_get(touches->items[touch].allocation);
        state.uses[state.use_count++] = (struct script_use){
            .where = operation->uses[i].where, .touch = touch, .offset = operation->uses[i].address - allocation->base};
    }
    record->use_count = state.use_count - record->first_use;
}

/* Does the kernel use memory that is neither ours nor seen by us: pinned host memory, the program's own mappings? Run
 * again, it would write there twice, or read what is there by then. */
static bool reaches_elsewhere(const struct operation *operation)
{
    const struct function_facts *facts = operation->facts;
    uint32_t next_use = 0;
    for (uint32_t where = 0; facts->is_readable && where + 8 <= operation->argument_bytes && where < 512 * 8;
         where += 8) {
        uint64_t value;
        CUmemorytype type;
        while (next_use < operation->use_count && operation->uses[next_use].where + 8 <= where) {
            next_use++;
        }
        if (next_use < operation->use_count && operation->uses[next_use].where < where + 8) {
            continue;
        }
        __builtin_memcpy(&value, operation->arguments + where, 8);
        bool is_used = (facts->stored_words[where / 512] | facts->loaded_words[where / 512]) >> (where / 8 % 64) & 1;
        if (is_used && value >= 65536 && value < 1ull << 57 &&
            driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, value) == CUDA_SUCCESS) {
            return true;
        }
    }
    return false;
}

/* Variables of modules are written by copies and sets to addresses that are not ours, and by kernels. */
static bool writes_outside(const struct operation *operation)
{
    if (operation->kind == OPERATION_LAUNCH) {
        return operation->facts->writes_module_memory;
    }
    if (operation->kind == OPERATION_COPY &&
        ((const struct copy_arguments *)(const void *)operation->arguments)->direction == COPY_DEVICE_TO_HOST) {
        return false;
    }
    return operation->use_count == 0 || operation->uses[0].where != 0; /* the destination comes first */
}

void learn_foreign(const struct operation *operation)
{
    state.is_outside_foreign |= state.is_on && writes_outside(operation);
}

static bool begin_timing(uint32_t index, uint32_t stream)
{
    while (state.event_count < 2 * (index + 1)) {
        if (driver.cuEventCreate(&state.events[state.event_count], CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
            return false;
        }
        state.event_count++;
    }
    return driver.cuEventRecord(state.events[2ul * index], streams_handle(stream)) == CUDA_SUCCESS;
}

uint32_t learn_before(const struct operation *operation, uint64_t signature, struct touches *touches, uint32_t stream)
{
    if (!has_room(operation, touches)) {
        state.is_overfull = true;
        state.dropped++;
        return SCRIPT_NONE;
    }
    uint32_t index = state.record_count++;
    struct record *record = &state.records[index];
    *record = (struct record){.signature = signature,
                              .facts = operation->kind == OPERATION_LAUNCH ? operation->facts : NULL,
                              .kind = (uint32_t)operation->kind,
                              .live_signature = space_live_signature(),
                              .number = tracing_next(),
                              .stack = operation->stack,
                              .is_usable = !operation->is_opaque && !operation->is_captured &&
                                           !operation->is_cooperative_multi && !touches->is_overfull};
    if (operation->kind == OPERATION_LAUNCH) {
        const CUlaunchConfig *config = &operation->config;
        const uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
        const uint32_t block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
        __builtin_memcpy(record->grid, grid, sizeof grid);
        __builtin_memcpy(record->block, block, sizeof block);
    }
    if (operation->kind == OPERATION_LAUNCH && (operation->facts->has_indirect_store || reaches_elsewhere(operation))) {
        record->is_usable = false;
    }
    if (operation->kind == OPERATION_COPY) {
        const struct copy_arguments *copy = (const void *)operation->arguments;
        record->direction = copy->direction;
        record->copied_bytes = copy->bytes;
        if (copy->direction == COPY_DEVICE_TO_DEVICE && operation->use_count < 2) {
            record->is_usable = false; /* what it reads is not ours: it may change unseen */
        }
    }
    record->writes_outside = writes_outside(operation);
    record_touches(record, touches, stream);
    record_uses(record, operation, touches);
    record->is_timed = begin_timing(index, stream);
    return index;
}

void learn_after(uint32_t index, const struct touches *touches, uint32_t stream)
{
    if (index == SCRIPT_NONE) {
        return;
    }
    struct record *record = &state.records[index];
    if (record->is_timed) {
        record->is_timed = driver.cuEventRecord(state.events[2ul * index + 1], streams_handle(stream)) == CUDA_SUCCESS;
    }
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        struct record_touch *touch = &state.touches[record->first_touch + i];
        touch->after = proof_log(allocation->base, allocation->bytes, stream);
        if (touch->object != SPACE_NONE && !state.objects[touch->object].was_there && !touch->is_full_write &&
            !state.objects[touch->object].is_small) {
            touch->unwritten = proof_log_unwritten(allocation->base, allocation->bytes, stream);
        }
    }
}

bool learn_is_rejected(CUfunction function)
{
    for (uint32_t i = 0; i < state.rejected_count; i++) {
        if (state.rejected[i].function == function) {
            return true;
        }
    }
    return false;
}

void learn_reject(CUfunction function, const char *name, const char *reason)
{
    if (function == NULL || learn_is_rejected(function)) {
        return;
    }
    if (state.rejected == NULL) {
        state.rejected = store_reserve(sizeof *state.rejected * MAX_REJECTED, "rejected recipes");
    }
    if (state.rejected != NULL && state.rejected_count < MAX_REJECTED) {
        state.rejected[state.rejected_count++].function = function;
    }
    say(SAY_INFO, "%s is not recomputed: %s", name, reason);
}

uint32_t learn_rejected(void)
{
    return state.rejected_count;
}

uint64_t learn_dropped_records(void)
{
    return state.dropped;
}
