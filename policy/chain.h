/* A network seen as a chain of stages, where it is one: the forward part is cut wherever few versions cross, and
 * every operation after the turn works for one stage, in reverse order. Chain strategies decide which inputs of
 * stages to store and which stages to keep with their tape; chain_write turns that into a plan.
 *
 * Stage k runs operations [first[k], first[k + 1]); first[stage_count] == turn. Its input is what crosses the
 * boundary before it; its tape is what it makes that only operations after the turn still need. The last stage
 * runs nothing: its input is what the stage before it makes for after the turn.
 *
 * Bytes: `base` counts what is there whatever is decided. */
#pragma once
#include "policy/graph.h"
#include "policy/items.h"

struct chain_stage {
    uint32_t first_operation;
    uint64_t input_bytes; /* crosses into the stage; may be dropped and rebuilt */
    uint64_t tape_bytes;
    uint64_t inner_bytes; /* most that running it forward takes beyond input, tape and base */
    uint64_t back_bytes; /* most that its operations after the turn take beyond input, tape and output, base included */
    uint64_t forward_ns;
    uint32_t
        joined_until; /* while the chain is being found: the stages after it up to this are to become one with it */
};

struct chain {
    const struct graph *graph;
    uint32_t turn, stage_count;
    struct chain_stage *stages; /* stage_count + 1; the last one only marks the end */
    uint32_t *home;             /* per version: stage that makes it; POLICY_NONE if none does */
    bool *is_crossing;          /* per version: a later stage needs it before the turn */
    uint32_t *last_stage;       /* per version: the last stage that it crosses into, its home where it does not cross */
    uint32_t *back_stage;       /* per operation from the turn on */
    uint64_t base_bytes;        /* always there before the turn */
};

enum chain_result { CHAIN_FOUND, CHAIN_NONE, CHAIN_NO_MEMORY };

/* CHAIN_NONE where the graph is not a chain of at least three stages. At most `most_stages`: neighbours are
 * joined. may_join: stages that an operation after the turn needs at once, or out of order, are joined as well, where
 * that leaves a chain. On CHAIN_FOUND the chain must be released. */
enum chain_result chain_find(struct chain *chain, const struct graph *graph, uint32_t turn, uint32_t most_stages,
                             bool may_join);
void chain_release(struct chain *chain);

/* What to do with stages a .. b, whose input is there, with `memory` units left (the strategy's own measure). */
struct chain_choice {
    bool keeps_tape;       /* run a with its tape and go on with a + 1 */
    uint32_t split;        /* otherwise: store the input of this stage, a < split <= b */
    uint32_t memory_after; /* left for what comes after the stored or kept */
};

/* Decides; called with a < b only. */
typedef struct chain_choice chain_chooser(void *context, uint32_t a, uint32_t b, uint32_t memory);

/* Writes the plan, without regard to any cap; needless drops and replays are left to tidy_plan. False when
 * memory ran out or the chain cannot be executed this way. */
bool chain_write(const struct chain *chain, chain_chooser *choose, void *context, uint32_t memory,
                 struct item_list *out);
