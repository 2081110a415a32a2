#include "policy/forward.h"
#include "policy/pressure.h"
#include <stdlib.h>
#include <string.h>

struct candidate {
    uint32_t first_need, version;
};

enum {
    ITEMS_PER_OPERATION = 32,
    ITEMS_ALWAYS = 20000,
    ITEMS_IF_PATIENT = 400000,
    MOST_LOSSES = 200,
    EFFORT_STRIDE = 64
};

static bool push_frame(struct forward *f, uint32_t operation)
{
    const struct graph *g = f->graph;
    if (f->frame_count == f->frame_capacity) {
        uint32_t capacity = f->frame_capacity ? f->frame_capacity * 2 : 64;
        struct frame *frames = realloc(f->frames, sizeof *frames * capacity);
        if (!frames) {
            f->out_of_memory = true;
            return false;
        }
        f->frames = frames;
        f->frame_capacity = capacity;
    }
    f->frames[f->frame_count++] = (struct frame){operation, g->need_first[operation]};
    for (uint32_t k = g->need_first[operation]; k < g->need_first[operation + 1]; k++)
        f->versions[g->needs[k]].locks++;
    return true;
}

static void pop_frame(struct forward *f)
{
    const struct graph *g = f->graph;
    uint32_t operation = f->frames[--f->frame_count].operation;
    for (uint32_t k = g->need_first[operation]; k < g->need_first[operation + 1]; k++)
        if (--f->versions[g->needs[k]].locks == 0)
            pressure_offer(f, g->needs[k]);
}

/* First version, from the frame's cursor on, that the operation needs and that is absent. */
static uint32_t next_missing(struct forward *f, struct frame *frame)
{
    const struct graph *g = f->graph;
    uint32_t o = frame->operation;
    if (!f->operations[o].absent_inputs)
        return POLICY_NONE;
    uint32_t reads_end = g->need_first[o] + g->problem->operations[o].read_count;
    for (; frame->cursor < g->need_first[o + 1]; frame->cursor++) {
        uint32_t v = g->needs[frame->cursor];
        if (residency_has(&f->residency, v))
            continue;
        if (frame->cursor < reads_end || !residency_has(&f->residency, g->replaced_by[v]))
            return v;
    }
    return POLICY_NONE;
}

/* A result that is there and will be made anyway needs no second place: drop it before the replay. */
static bool drop_siblings(struct forward *f, uint32_t operation)
{
    const struct policy_problem *p = f->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        if (residency_has(&f->residency, v) && p->versions[v].bytes && p->versions[v].replaces == POLICY_NONE &&
            p->versions[v].droppable_from <= f->residency.position && !forward_step(f, PLAN_DROP, v))
            return false;
    }
    return true;
}

static bool make_room_for(struct forward *f, uint32_t operation, bool is_replay)
{
    uint64_t growth = residency_growth(&f->residency, operation, is_replay);
    if (f->residency.bytes + growth <= f->settings->cap)
        return true;
    if (is_replay) {
        if (!drop_siblings(f, operation))
            return false;
        growth = residency_growth(&f->residency, operation, true);
    }
    return pressure_make_room(f, growth);
}

static void settle_outputs(struct forward *f, uint32_t operation)
{
    const struct policy_problem *p = f->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        if (old != POLICY_NONE && !residency_has(&f->residency, old))
            pressure_note_replaced(f, old);
        pressure_offer(f, v);
    }
}

/* Executes the operation of the topmost frame, whose inputs are all there, and removes the frame. */
static bool finish_frame(struct forward *f)
{
    const struct graph *g = f->graph;
    uint32_t operation = f->frames[f->frame_count - 1].operation;
    bool is_replay = operation != f->residency.position;
    if (!make_room_for(f, operation, is_replay) || !forward_step_operation(f, operation))
        return false;
    if (is_replay)
        f->replay_ns += g->problem->operations[operation].nanoseconds;
    else
        pressure_wake(f);
    pop_frame(f);
    settle_outputs(f, operation);
    return true;
}

static enum forward_result failure(const struct forward *f)
{
    return f->out_of_memory ? FORWARD_NO_MEMORY : FORWARD_STUCK;
}

static bool is_worthless(const struct forward *f)
{
    uint64_t limit = (uint64_t)f->graph->problem->operation_count * ITEMS_PER_OPERATION;
    limit += f->settings->is_patient ? ITEMS_IF_PATIENT : ITEMS_ALWAYS;
    return f->replay_ns > f->settings->give_up_ns || f->items.count > limit || f->most_losses > MOST_LOSSES;
}

static bool fetch(struct forward *f, uint32_t v)
{
    const struct graph *g = f->graph;
    if (f->residency.state[v] & RESIDENCY_ON_HOST)
        return pressure_make_room(f, g->problem->versions[v].bytes) && forward_step(f, PLAN_SWAP_IN, v);
    uint32_t producer = g->problem->versions[v].producer;
    return producer != POLICY_NONE && g->until[producer] >= f->residency.position && push_frame(f, producer);
}

/* Runs frames until the stack is as deep as it was: `floor` frames are left. */
static enum forward_result work_down(struct forward *f, uint32_t floor)
{
    while (f->frame_count > floor) {
        struct frame *top = &f->frames[f->frame_count - 1];
        uint32_t missing = next_missing(f, top);
        if (missing == POLICY_NONE) {
            top->cursor = f->graph->need_first[top->operation];
            missing = next_missing(f, top);
        }
        if (is_worthless(f))
            return FORWARD_GAVE_UP;
        if (!(missing == POLICY_NONE ? finish_frame(f) : fetch(f, missing)))
            return failure(f);
    }
    return FORWARD_DONE;
}

static int latest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->first_need != y->first_need)
        return x->first_need > y->first_need ? -1 : 1;
    return x->version < y->version ? -1 : x->version > y->version;
}

/* What is needed latest starts on the host. */
static bool start_on_host(struct forward *f)
{
    const struct graph *g = f->graph;
    const struct policy_problem *p = g->problem;
    uint32_t count = 0;
    uint64_t limit = (uint64_t)(f->settings->start_share * (double)f->settings->cap);
    if (f->settings->swap_weight < 0 || !(p->out_bytes_per_ns > 0) || !(p->in_bytes_per_ns > 0) ||
        f->residency.bytes <= limit)
        return true;
    struct candidate *candidates = malloc(sizeof *candidates * ((size_t)p->version_count + 1));
    if (!candidates)
        return !(f->out_of_memory = true);
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].may_start_on_host && p->versions[v].bytes) {
            bool has_reader = g->reader_first[v] < g->reader_first[v + 1];
            candidates[count++] =
                (struct candidate){has_reader ? g->readers[g->reader_first[v]] : p->operation_count, v};
        }
    qsort(candidates, count, sizeof *candidates, latest_first);
    for (uint32_t k = 0; k < count && f->residency.bytes > limit; k++)
        forward_step(f, PLAN_DROP, candidates[k].version);
    for (uint32_t k = 0; k < count; k++)
        pressure_note_replaced(f, candidates[k].version);
    free(candidates);
    return !f->out_of_memory;
}

/* What started on the host ends there. */
static bool pay_owed(struct forward *f)
{
    const struct policy_problem *p = f->graph->problem;
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (!residency_is_owed(&f->residency, v) || (f->residency.state[v] & RESIDENCY_ON_HOST))
            continue;
        if (p->versions[v].droppable_from > f->residency.position || !forward_step(f, PLAN_SWAP_OUT, v))
            return false;
    }
    return true;
}

static enum forward_result restore_kept(struct forward *f)
{
    const struct policy_problem *p = f->graph->problem;
    if (!pay_owed(f))
        return failure(f);
    for (uint32_t v = 0; v < p->version_count; v++)
        f->versions[v].locks += residency_is_due(&f->residency, v);
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (!residency_is_due(&f->residency, v) || residency_has(&f->residency, v))
            continue;
        if (!fetch(f, v))
            return failure(f);
        enum forward_result result = work_down(f, 0);
        if (result != FORWARD_DONE)
            return result;
    }
    for (uint32_t v = 0; v < p->version_count; v++)
        if (residency_is_due(&f->residency, v) && !residency_has(&f->residency, v))
            return FORWARD_STUCK; /* rebuilding one took another in place */
    return FORWARD_DONE;
}

static enum forward_result walk_iteration(struct forward *f)
{
    const struct policy_problem *p = f->graph->problem;
    if (!start_on_host(f))
        return FORWARD_NO_MEMORY;
    if (f->residency.bytes > f->settings->cap)
        return FORWARD_STUCK;
    for (uint32_t v = 0; v < p->version_count; v++)
        pressure_offer(f, v);
    for (uint32_t o = 0; o < p->operation_count; o++) {
        if (!f->settings->must_finish && o % EFFORT_STRIDE == 0 && effort_is_spent(f->settings->effort))
            return FORWARD_GAVE_UP;
        if (!push_frame(f, o))
            return FORWARD_NO_MEMORY;
        enum forward_result result = work_down(f, 0);
        if (result != FORWARD_DONE)
            return result;
    }
    return restore_kept(f);
}

enum forward_result forward_plan(const struct graph *graph, const struct forward_settings *settings,
                                 struct item_list *out, uint64_t *replay_ns)
{
    struct forward f;
    enum forward_result result = forward_state_begin(&f, graph, settings) ? walk_iteration(&f) : FORWARD_NO_MEMORY;
    if (f.out_of_memory)
        result = FORWARD_NO_MEMORY;
    if (replay_ns)
        *replay_ns = f.replay_ns;
    if (result == FORWARD_DONE)
        *out = f.items;
    else
        items_release(&f.items);
    forward_state_end(&f);
    return result;
}
