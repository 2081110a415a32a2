/* A plan seen as spans of residency: when each version is present, who uses it there, and what is left of
 * the plan when some uses are taken away.
 *
 * The skeleton of a plan is its runs, replays and swap-ins, in order; drops and swap-outs follow from it:
 * a version goes as soon as its span has no further use. A span ends when its version is dropped, replaced
 * in place or swapped out. Spans of one version never overlap.
 *
 * Invariant: a living skeleton entry is used by someone, or is a RUN. last_use of a span is the last living
 * entry that needs it (skeleton_count = the end of the iteration), or POLICY_NONE.
 */
#pragma once
#include "policy/items.h"
#include "policy/residency.h"

struct span {
    uint32_t version;
    uint32_t start; /* skeleton entry that makes it present; POLICY_NONE = there from the beginning */
    uint32_t last_use;
    uint32_t use_first, use_end; /* slice of uses: not yet discarded ones are [use_first, use_end) */
    uint32_t before;             /* previous span of this version that this one continues, or POLICY_NONE */
    uint32_t after;              /* a later span that continues this one, or POLICY_NONE; the last one keeps last_use */
    uint32_t previous;           /* previous span of this version, whatever ended it, or POLICY_NONE */
    bool was_replaced;           /* its version was taken over in place */
    bool starts_on_host; /* the version's first span, which is empty: the iteration starts with it on the host */
};

struct spans {
    const struct graph *graph;
    struct plan_item *skeleton;
    uint32_t skeleton_count;
    bool *is_dead;          /* per skeleton entry: taken out */
    uint64_t *bytes_during; /* per skeleton entry: what counts while it runs in the plan as given */
    uint32_t *run_entry;    /* per operation: the skeleton entry of its RUN */
    uint32_t *pending;      /* scratch of spans_remove */
    struct span *spans;
    uint32_t span_count, span_capacity;
    uint32_t *need_first, *needs; /* per skeleton entry: spans it needs */
    uint32_t *made_first, *made;  /* per skeleton entry: spans it starts */
    uint32_t *uses;               /* skeleton entries, by span, ascending */
};

/* What a plan takes, as far as executing its skeleton shows. */
struct spans_found {
    uint64_t peak_bytes, replay_nanoseconds;
    bool has_swaps;   /* then only the simulator knows the time */
    bool is_complete; /* in the end all is there that must be */
};

/* Adds the item that the residency has just stepped through. */
void spans_account(struct spans_found *found, const struct residency *residency, struct plan_item item);

/* The items must be a legal plan but for the cap. False when memory ran out; nothing is left allocated then. */
bool spans_collect(struct spans *s, const struct graph *graph, const struct item_list *plan, struct spans_found *found);
void spans_release(struct spans *s);

/* Takes entry out and whatever becomes useless by that. `on_shrink` (may be NULL) is told which entries
 * [from, to) hold `bytes` less. */
typedef void spans_shrink(void *context, uint32_t from, uint32_t to, uint64_t bytes);
void spans_remove(struct spans *s, uint32_t entry, spans_shrink *on_shrink, void *context);
/* Removes all replays and swap-ins that nobody uses. */
void spans_remove_useless(struct spans *s);

/* The span that keeps last_use for the whole chain of continued spans. */
uint32_t spans_chain_end(struct spans *s, uint32_t span);

/* Lets `later` continue the span before it: present in between. */
void spans_join(struct spans *s, uint32_t later);

/* Writes the plan that the living entries make. False when memory ran out or it would not be legal under any cap. */
bool spans_write(struct spans *s, struct item_list *out, struct spans_found *found);
