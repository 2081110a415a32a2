#include "shim/iterate.h"

#include "shim/config.h"
#include "shim/follow.h"
#include "shim/hidden.h"
#include "shim/learn.h"
#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/reside.h"
#include "shim/say.h"
#include "shim/stats.h"
#include "shim/swap.h"
#include "shim/tracing.h"
#include "trace/period.h"

#include "shim/inside.h"

#define PROBATION_ITERATIONS 2u
#define RESERVE_FRAMES       2u         /* for slabs that fill otherwise than in the recording */
#define PERIOD_HISTORY       (1u << 18) /* iterations of up to half as many operations are found */
#define PLANNING_NANOSECONDS 1000000000ull

/* Iterations begin where a kernel of this name is launched (REPRISE_MARKER): no detection. */
struct marked {
    uint64_t begin, length;        /* of the iteration in progress; of the one before it */
    uint64_t hash, last_hash;      /* over its operations */
    uint64_t live, last_live;      /* the live set as it began */
    uint64_t least_held, least_at; /* where the iteration holds least: a plan had better begin there */
    bool has_begun;
    struct period_answer answer;
};

static struct {
    struct period *period;
    struct marked marked;
    uint64_t position;   /* of the operation in hand */
    uint64_t learn_base; /* position of the first recorded operation */
    uint64_t known_boundary;
    struct script scripts[2];
    struct policy_problem problems[2];
    uint32_t bank;                       /* of the installed script */
    uint32_t window_first, window_count; /* in the recording, of the installed script; count 0: recording is gone */
    uint32_t probation_left, reserve_frames;
    uint64_t floor_bytes;
    uint64_t refused_period; /* found_at, plus one, of the period for which there is no plan */
    bool has_refused, is_pressed;
} state;

bool iterate_open(void)
{
    state.period = period_start(PERIOD_HISTORY);
    state.reserve_frames = RESERVE_FRAMES;
    return state.period != NULL;
}

uint64_t iterate_floor_bytes(void)
{
    return state.floor_bytes;
}

void iterate_new_lane(void)
{
    period_stop(state.period);
    state.period = period_start(PERIOD_HISTORY);
    CHECK(state.period != NULL);
    state.position = state.known_boundary = 0;
    state.marked = (struct marked){0};
    stats_skip_to(0);
}

/* ---- where iterations begin ---- */

static void feed_marker(uint64_t signature, const char *kernel)
{
    struct marked *marked = &state.marked;
    uint64_t live = space_live_signature();
    if (kernel != NULL && __builtin_strcmp(kernel, config()->marker) == 0) {
        uint64_t length = state.position - marked->begin;
        bool is_repeated = marked->has_begun && length == marked->length && marked->hash == marked->last_hash &&
                           live == marked->live && live == marked->last_live;
        uint64_t found_at = marked->answer.length == length ? marked->answer.found_at : state.position;
        marked->answer =
            is_repeated ? (struct period_answer){length, marked->least_at, found_at} : (struct period_answer){0};
        marked->length = marked->has_begun ? length : 0;
        marked->last_hash = marked->hash;
        marked->last_live = marked->live;
        marked->begin = state.position;
        marked->live = live;
        marked->hash = 0;
        marked->has_begun = true;
        marked->least_held = UINT64_MAX;
    }
    if (space_live_bytes() <= marked->least_held) {
        marked->least_held = space_live_bytes();
        marked->least_at = state.position;
    }
    marked->hash = (marked->hash ^ signature) * 0x9e3779b97f4a7c15ull;
    marked->hash ^= marked->hash >> 31;
}

static struct period_answer period_known(void)
{
    return config()->marker != NULL ? state.marked.answer : period_now(state.period);
}

/* ---- planning ---- */

static uint64_t whole_frames(uint64_t bytes)
{
    uint64_t frame = frames_count().frame_bytes;
    return (bytes + frame - 1) / frame * frame;
}

static uint64_t fixed_bytes(const struct script *script)
{
    uint64_t prints = whole_frames((uint64_t)script->version_count * 32);
    return script->given_page_bytes + whole_frames(script->given_small_bytes + proof_device_bytes()) + prints +
           (uint64_t)(state.reserve_frames + 1) * frames_count().frame_bytes;
}

static bool plan_swaps(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++) {
        if (plan->items[i].verb == PLAN_SWAP_OUT) {
            return true;
        }
    }
    return false;
}

#define KINDS_SAID 64u

/* Which kernels the time goes to, and which of them are replayed. */
static void say_kinds(const struct script *script)
{
    static struct {
        const char *name;
        uint64_t nanoseconds, count, replays;
    } kinds[KINDS_SAID];
    uint32_t kind_count = 0;
    for (uint32_t i = 0; i < script->plan.item_count; i++) {
        struct plan_item item = script->plan.items[i];
        if (item.verb != PLAN_RUN && item.verb != PLAN_REPLAY) {
            continue;
        }
        const struct script_operation *operation = &script->operations[item.index];
        uint32_t k = 0;
        while (k < kind_count && __builtin_strcmp(kinds[k].name, operation->name) != 0) {
            k++;
        }
        if (k == kind_count && kind_count < KINDS_SAID) {
            kinds[kind_count].name = operation->name;
            kinds[kind_count].nanoseconds = kinds[kind_count].count = kinds[kind_count].replays = 0;
            kind_count++;
        }
        if (k < kind_count) {
            kinds[k].nanoseconds += item.verb == PLAN_RUN ? operation->nanoseconds : 0;
            kinds[k].count += item.verb == PLAN_RUN;
            kinds[k].replays += item.verb == PLAN_REPLAY;
        }
    }
    for (uint32_t k = 0; k < kind_count; k++) {
        say(SAY_DEBUG, "  %6llu us %6llu runs %6llu replays  %s", (unsigned long long)(kinds[k].nanoseconds / 1000),
            (unsigned long long)kinds[k].count, (unsigned long long)kinds[k].replays, kinds[k].name);
    }
}

static void say_plan(const struct script *script)
{
    const struct plan *plan = &script->plan;
    uint64_t frame = frames_count().frame_bytes;
    say(SAY_INFO, "plan %s: %u operations, %u items, peak %llu of %llu frames, %.2f %% more time (bound %.2f %%)",
        plan->strategy, script->operation_count, plan->item_count, (unsigned long long)(plan->peak_bytes / frame),
        (unsigned long long)frames_count().cap_frames,
        100.0 * (double)plan->added_nanoseconds / (double)(plan->run_nanoseconds + 1),
        100.0 * (double)plan->bound_nanoseconds / (double)(plan->run_nanoseconds + 1));
    if (say_is_on(SAY_DEBUG)) {
        say_kinds(script);
    }
}

static void refuse(const struct script *script, uint64_t floor, const char *why)
{
    uint32_t needing = script->plan.needing_operation;
    bool is_named = script->plan.needed_bytes != 0 && needing < script->operation_count;
    state.floor_bytes = floor;
    if (!state.has_refused) {
        say(SAY_WARNING, "%s%s%s%s", why, is_named ? "; that operation is " : "",
            is_named ? script->operations[needing].name : "",
            config()->may_swap ? "; memory is swapped on demand" : "");
        state.has_refused = true;
    }
    if (!config()->may_swap) {
        reside_allow_eviction(false);
    }
}

/* Measured once. Where there is no frame to measure with, a careful guess: the slowest link in use. */
static struct swap_speed copy_speed(uint32_t stream)
{
    static struct swap_speed measured;
    struct swap_speed guess = {4.0, 4.0};
    uint64_t bytes = frames_count().frame_bytes;
    CUresult result;
    if (measured.out_bytes_per_ns > 0) {
        return measured;
    }
    uint32_t place = space_take_place(bytes, stream, &result);
    bool may_evict = config()->cap_bytes != 0;
    bool is_measured = place != SPACE_NONE &&
                       (may_evict ? reside_acquire(space_place(place), stream, &result)
                                  : frames_acquire(space_place(place), stream, &result)) &&
                       swap_measure(space_place(place)->base, bytes, stream, &measured);
    if (place != SPACE_NONE) {
        last_use_note(&space_place(place)->last, stream);
        space_give_place(place);
    }
    struct swap_speed speed = is_measured ? measured : guess;
    say(SAY_DEBUG, "copies %s: %.2f GB/s out, %.2f GB/s in",
        is_measured ? "measured" : "could not be measured, assumed", speed.out_bytes_per_ns, speed.in_bytes_per_ns);
    return speed;
}

/* Plans the recorded window and installs the result. Not while an iteration is followed. */
static bool make_plan(uint32_t first, uint32_t count, uint32_t stream)
{
    uint32_t bank = 1 - state.bank;
    struct script *script = &state.scripts[bank];
    struct policy_problem *problem = &state.problems[bank];
    plan_release(&script->plan);
    if (!learn_make(bank, first, count, stream, script, problem)) {
        return false;
    }
    struct frames_counts frames = frames_count();
    problem->fixed_bytes = fixed_bytes(script);
    if (config()->may_swap) {
        struct swap_speed speed = copy_speed(stream);
        problem->out_bytes_per_ns = speed.out_bytes_per_ns;
        problem->in_bytes_per_ns = speed.in_bytes_per_ns;
    }
    struct policy_options options = {.cap_bytes =
                                         (uint64_t)(frames.cap_frames - frames.charged_frames) * frames.frame_bytes,
                                     .deadline_ns = PLANNING_NANOSECONDS,
                                     .is_brief = true};
    tracing_write(script, problem, stats_row_count());
    if (config()->cap_bytes == 0) {
        return false; /* recording only */
    }
    uint64_t floor = 0;
    char why[256] = "";
    options.may_swap = false; /* what recomputation alone can hold is not swapped */
    enum policy_status status = policy_make_plan(problem, &options, &script->plan, &floor, why, sizeof why);
    if (status == POLICY_INFEASIBLE && config()->may_swap) {
        options.may_swap = true;
        status = policy_make_plan(problem, &options, &script->plan, &floor, why, sizeof why);
    }
    if (status != POLICY_OK) {
        refuse(script, floor, why);
        follow_install(NULL, false, false);
        return false;
    }
    learn_annotate(script, problem);
    if (!proof_plan(script->print_count, stream)) {
        follow_install(NULL, false, false);
        return false;
    }
    state.bank = bank;
    state.window_first = first;
    state.window_count = count;
    state.probation_left = PROBATION_ITERATIONS;
    say_plan(script);
    stats_planned(script->plan.run_nanoseconds + script->plan.added_nanoseconds, script->plan.peak_bytes,
                  plan_swaps(&script->plan));
    follow_install(script, true, config()->may_swap);
    reside_allow_eviction(true);
    return follow_script() != NULL;
}

static void plan_again(uint32_t stream)
{
    follow_install(NULL, false, false);
    if (state.window_count == 0 || !make_plan(state.window_first, state.window_count, stream)) {
        state.window_count = 0;
    }
}

/* ---- recording ---- */

void iterate_record(uint32_t stream)
{
    learn_begin();
    state.is_pressed = true;
    state.learn_base = state.position;
    state.window_count = 0;
    hidden_scan_everything(stream);
    stats_set_phase(follow_script() != NULL ? PHASE_REACTIVE : PHASE_RECORDING);
    say(SAY_DEBUG, "recording from operation %llu on", (unsigned long long)state.position);
}

void iterate_left(uint32_t stream)
{
    frames_unwatch();
    stats_set_phase(PHASE_REACTIVE);
    const char *trouble = follow_trouble();
    bool is_short = trouble != NULL && __builtin_strcmp(trouble, FOLLOW_SHORT) == 0;
    if (is_short) {
        state.reserve_frames += 2;
    }
    if (proven_wants_new_plan() || is_short) {
        plan_again(stream);
    } else if (trouble != NULL && __builtin_strcmp(trouble, FOLLOW_PINNED) == 0) {
        follow_install(NULL, false, false);
    }
    iterate_record(stream);
}

/* ---- boundaries ---- */

/* Rows for what was seen before the first boundary was known. */
static void first_rows(const struct period_answer *answer)
{
    uint64_t begin = answer->boundary;
    while (begin >= answer->length && answer->boundary - begin < 2 * answer->length) {
        begin -= answer->length;
    }
    uint64_t launches =
        stats_launches_before(answer->boundary) - stats_launches_before(answer->boundary - answer->length);
    if (stats_row_count() == 0 && stats_launches_before(begin) < launches / 2) {
        stats_skip_to(begin); /* setting up is not an iteration */
    }
    if (begin > stats_rows_end()) {
        stats_row(begin);
    }
    for (uint64_t at = begin + answer->length; at <= answer->boundary; at += answer->length) {
        stats_row(at);
    }
}

static void note_boundary(void)
{
    struct period_answer answer = period_known();
    if (answer.length == 0 || answer.boundary == state.known_boundary || answer.boundary > state.position) {
        return;
    }
    state.known_boundary = answer.boundary;
    if (follow_script() == NULL) {
        first_rows(&answer);
    }
}

static void try_to_plan(uint32_t stream)
{
    struct period_answer answer = period_known();
    if (!state.is_pressed || follow_script() != NULL || answer.length == 0 || answer.boundary > state.position ||
        state.refused_period == answer.found_at + 1) {
        return;
    }
    if (!learn_is_on()) {
        iterate_record(stream);
    }
    if (answer.boundary < state.learn_base + answer.length) {
        return;
    }
    uint64_t first = answer.boundary - answer.length - state.learn_base;
    if (!make_plan((uint32_t)first, (uint32_t)answer.length, stream)) {
        state.refused_period = answer.found_at + 1;
        learn_stop();
        stats_set_phase(config()->cap_bytes == 0 ? PHASE_PASS_THROUGH : PHASE_REACTIVE);
    }
}

static void iteration_ended(uint32_t stream)
{
    stats_row(state.position);
    frames_assign();
    proven_look(follow_script());
    if (proven_wants_new_plan()) {
        plan_again(stream);
        return;
    }
    if (state.probation_left > 0 && --state.probation_left == 0) {
        follow_end_probation();
    }
}

static void finish_iteration(uint32_t stream)
{
    follow_finish();
    stats_snapshot(state.position);
    if (follow_trouble() != NULL) {
        iterate_left(stream);
        return;
    }
    iteration_ended(stream);
}

/* Record i of the recording is operation learn_base + i. It began between two operations, or an operation could not be
 * run and so was not recorded: then it begins here. */
static void align_recording(uint32_t stream)
{
    if (!learn_is_on() || learn_count() == state.position - state.learn_base) {
        return;
    }
    if (learn_count() == 0) {
        state.learn_base = state.position;
    } else {
        iterate_record(stream);
    }
}

void iterate_arrived(uint64_t signature, const char *kernel, uint32_t stream)
{
    state.position = period_position(state.period);
    tracing_position(state.position);
    stats_snapshot(state.position);
    align_recording(stream);
    if (follow_is_complete()) {
        finish_iteration(stream);
    }
    struct period_operation operation = {signature, space_live_signature(), space_live_bytes()};
    period_feed(state.period, &operation);
    if (config()->marker != NULL) {
        feed_marker(signature, kernel);
    }
    if (follow_is_on()) {
        return;
    }
    note_boundary();
    try_to_plan(stream);
    if (follow_matches_start(signature) && follow_begin(stream)) {
        if (state.probation_left == 1) {
            frames_watch(); /* the second of its kind: places have settled */
        }
        stats_row(state.position);
        stats_set_phase(state.probation_left > 0 ? PHASE_PROBATION : PHASE_PLANNED);
        stats_snapshot(state.position);
        stats_skip_to(state.position);
        learn_stop();
    } else if (follow_script() != NULL && !learn_is_on()) {
        iterate_record(stream);
    }
}

void iterate_finish(void)
{
    if (follow_is_complete()) {
        stats_row(period_position(state.period));
    }
}
