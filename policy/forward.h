/* Forward simulation with knowledge of the future: walks through the iteration, drops only under pressure
 * and lowest score first, and rebuilds on demand. All strategies for general graphs are settings of it.
 *
 * Score of a version: dead, wanted by nobody and not held: drop first. Otherwise, while the position is at most
 * `pivot` and `hold` is given: hold[v] / distance^beta; else (own time + dropped dead ancestors + omega x
 * dropped ancestors that the program still needs) / bytes / distance^beta. Distance is program time until
 * the version is needed next, needs of its dropped descendants included.
 */
#pragma once
#include "policy/effort.h"
#include "policy/items.h"
#include "policy/residency.h"

struct forward_settings {
    uint64_t cap;
    const double *hold; /* per version, or NULL; > 0 holds also what is dead */
    bool flat_hold;     /* hold decides up to the pivot, distance only by hold_beta */
    double hold_beta;
    const double *weight; /* per version, or NULL: factor on every score */
    uint32_t pivot;
    uint32_t turn;    /* where the undropped run holds most: what is made from there on is dear to make again */
    bool counts_dead; /* what is there but dead counts as dropped in the cost of rebuilding others */
    double beta, omega;
    double swap_weight;    /* share of a transfer's time that counts as its cost; < 0: never swap */
    bool never_replays;    /* swapping alone */
    double start_share;    /* where swapping: share of the cap that may be taken at the start by what could be on the
                              host instead; 0 = all of that starts there */
    uint64_t small_bytes;  /* versions up to this size are dropped only when nothing else is left */
    uint64_t give_up_ns;   /* replayed time at which the attempt is worthless */
    struct effort *effort; /* spent here */
    bool is_patient;       /* a plan may be as long as it takes */
    bool is_loyal;         /* what an operation lost again and again while it waited is let go last */
    bool keeps_gradients;  /* what is made from the turn on is let go last */
    bool keeps_given;      /* what is given and cannot be made again is let go last, even where nothing needs it now */
    bool must_finish;      /* goes on when the effort is spent */
};

enum forward_result {
    FORWARD_DONE,
    FORWARD_STUCK,   /* the cap cannot be held with these settings */
    FORWARD_GAVE_UP, /* give_up_ns passed, effort spent, or replaying without end */
    FORWARD_NO_MEMORY
};

/* On FORWARD_DONE `out`, which must be empty, holds a whole plan. Otherwise it stays empty. */
enum forward_result forward_plan(const struct graph *graph, const struct forward_settings *settings,
                                 struct item_list *out, uint64_t *replay_ns);
