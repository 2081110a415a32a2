/* A program of a few steps for the tests of following: recorded once, given a plan by hand, then run under it. Every
 * step writes `out` from `left` and `right`, or changes it in place; what each buffer should hold is computed beside.
 */
#pragma once
#include "tests/unit/core.h"

#include "shim/follow.h"
#include "shim/learn.h"

#define LARGE          (3u * CORE_FRAME)
#define WORDS          (LARGE / 8)
#define STOPPED_STATUS 3
#define REFUSED_STATUS 98 /* the driver was told to refuse the step itself: the child ends there */
#define MAX_BUFFERS    12u

/* COUNT: like MIX, and adds to the words of `right` (given); TURN: like MIX, and changes `right` as well. */
enum step_kind { MIX, CHANGE, NOISE, COUNT, TURN };
#define STEP_KINDS 5u

struct step {
    enum step_kind kind;
    uint32_t out, left, right; /* buffers; the first three are given, the others are made by their first step */
    uint32_t freed_before;     /* bits: buffers that the program frees before this step */
};

struct step_state {
    const struct step *steps;
    uint32_t step_count;
    uint32_t buffers[MAX_BUFFERS]; /* allocations; SPACE_NONE: not held */
    uint64_t expected[MAX_BUFFERS][WORDS];
    struct function_facts facts[STEP_KINDS];
    uint32_t stream;
    uint64_t scalar; /* changes from iteration to iteration */
    struct script script;
    struct policy_problem problem;
    struct plan_item items[64];
};

extern struct step_state state;

void steps_open(uint32_t cap, enum fake_order order);
void steps_open_at(uint32_t cap, enum fake_order order, double copy_bytes_per_ns); /* not strict */
struct allocation *steps_buffer(uint32_t index);
void steps_hold(uint32_t index);
void steps_free_all(void); /* all but what is given */
bool steps_is_resident(uint32_t index);
uint32_t steps_frames_in_use(void);

/* Records the steps once, and installs a script with this plan. */
void steps_install(const struct step *steps, uint32_t step_count, const struct plan_item *items, uint32_t item_count,
                   bool is_probation);
#define INSTALL(steps, items, is_probation)                                                                            \
    steps_install(steps, sizeof(steps) / sizeof *(steps), items, sizeof(items) / sizeof *(items), is_probation)

void steps_begin(void);                         /* an iteration, with other arguments than the last one */
bool steps_follow_one(const struct step *step); /* false: the iteration was left, the step was not run */
void steps_follow_all(void);
/* No iteration is on: everything that the program holds has the bytes it would have without us, at its address. */
void steps_check_held(void);
