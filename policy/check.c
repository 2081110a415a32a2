#include "policy/check.h"
#include <inttypes.h>
#include <stdio.h>

static const char *const verb_names[] = {"run", "replay", "drop", "swap out", "swap in"};

static void describe_end(const struct simulation *s, char *why, size_t why_bytes)
{
    if (s->fault.result == STEP_ABSENT)
        snprintf(why, why_bytes, "end of the plan: version %u must be present and is not", s->fault.version);
    else if (s->fault.result == STEP_NOT_ON_HOST)
        snprintf(why, why_bytes, "end of the plan: version %u must be on the host, where it started, and is not",
                 s->fault.version);
    else
        snprintf(why, why_bytes, "end of the plan: not every operation was run");
}

static void describe(const struct graph *g, const struct plan_item *items, uint32_t item_count, uint64_t cap,
                     const struct simulation *s, char *why, size_t why_bytes)
{
    if (s->fault_item >= item_count) {
        describe_end(s, why, why_bytes);
        return;
    }
    struct plan_item item = items[s->fault_item];
    const char *verb = item.verb <= PLAN_SWAP_IN ? verb_names[item.verb] : "unknown verb";
    char reason[160] = "";
    switch (s->fault.result) {
    case STEP_BAD_ITEM:
        snprintf(reason, sizeof reason, "no such item");
        break;
    case STEP_OUT_OF_ORDER:
        snprintf(reason, sizeof reason, "operations must run once each, in order");
        break;
    case STEP_ABSENT:
        snprintf(reason, sizeof reason, "version %u is not present", s->fault.version);
        break;
    case STEP_NOT_REPLAYABLE:
        snprintf(reason, sizeof reason, "cannot be replayed here (replayable until %u)",
                 g->problem->operations[item.index].replayable_until);
        break;
    case STEP_NOT_DROPPABLE:
        snprintf(reason, sizeof reason, "not droppable before %u", g->problem->versions[item.index].droppable_from);
        break;
    case STEP_NOT_SWAPPABLE:
        snprintf(reason, sizeof reason, "not swappable");
        break;
    case STEP_NOT_ON_HOST:
        snprintf(reason, sizeof reason, "no copy on the host");
        break;
    case STEP_PRESENT:
        snprintf(reason, sizeof reason, "present already");
        break;
    default:
        snprintf(reason, sizeof reason, "needs %" PRIu64 " bytes, the cap is %" PRIu64, s->fault.bytes, cap);
        break;
    }
    snprintf(why, why_bytes, "item %u (%s %u): %s", s->fault_item, verb, item.index, reason);
}

bool check_plan(const struct graph *graph, const struct plan_item *items, uint32_t item_count, uint64_t cap,
                struct simulation *out, char *why, size_t why_bytes)
{
    struct simulation found;
    enum simulation_result result = simulate_plan(graph, items, item_count, cap, &found, NULL);
    if (out)
        *out = found;
    if (result == SIMULATION_DONE)
        return true;
    if (!why || !why_bytes)
        return false;
    if (result == SIMULATION_NO_MEMORY)
        snprintf(why, why_bytes, "out of memory while checking the plan");
    else
        describe(graph, items, item_count, cap, &found, why, why_bytes);
    return false;
}
