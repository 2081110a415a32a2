#include "shim/proven.h"

#include "shim/config.h"
#include "shim/engine.h"
#include "shim/learn.h"
#include "shim/proof.h"
#include "shim/say.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define AUDIT_ONE_IN 64u

static struct {
    struct proven_counts counts;
    bool wants_new_plan;
} state;

static bool next_audit(struct live *live)
{
    live->random = live->random * 6364136223846793005ull + 1442695040888963407ull;
    return (live->random >> 33) % AUDIT_ONE_IN == 0;
}

bool proven_dropping(struct live *live, uint32_t version, bool is_held)
{
    const struct script_version *script = &live->script->versions[version];
    struct live_version *state_of = &live->versions[version];
    const struct place *place = space_place(state_of->place);
    bool is_audit = !live->is_probation && script->is_checked && next_audit(live);
    bool may_return = script->is_rebuilt || is_held;
    if (live->keeps_copies && (live->is_probation || is_audit) && may_return && state_of->audit == NULL) {
        state_of->audit = swap_out(place->base, script->bytes, live->stream, SWAP_AUDIT);
        if (state_of->audit == NULL && live->is_probation) {
            return false;
        }
        tracing_moved(TRACE_AUDIT, live->slots[script->slot].traced, script->bytes);
    }
    /* The plan needs it no more, the program may: no plan has ever proven that it can be rebuilt from here on. */
    bool is_last = is_held && script->last_item < live->next_item;
    bool is_compared = live->is_probation ? may_return
                                          : is_last || ((script->is_checked || is_held) &&
                                                        (config()->verify_mode == VERIFY_ALWAYS || is_audit));
    if (state_of->is_doubtful && state_of->audit == NULL && proof_is_expected(script->print)) {
        proof_rebuilt(script->print, place->base, script->bytes, live->stream); /* has it changed since? */
    } else if (is_compared && !proof_is_expected(script->print)) {
        proof_expect(script->print, place->base, script->bytes, live->stream);
    }
    return true;
}

__attribute__((noreturn)) static void stop(const struct script *script, uint32_t version)
{
    const struct script_operation *operation = &script->operations[script->versions[version].producer];
    say(SAY_ERROR,
        "stopped: what %s recomputed differs from what it computed before (%llu bytes, operation %u of the "
        "iteration); no result of it has left the device",
        operation->name, (unsigned long long)script->versions[version].bytes, script->versions[version].producer);
    engine_stop();
}

/* The copy is put back, so nothing is lost; the recipe is not used again after this iteration. */
static bool refute(struct live *live, uint32_t version)
{
    struct live_version *state_of = &live->versions[version];
    const struct script_operation *operation = &live->script->operations[live->script->versions[version].producer];
    state.counts.mismatched++;
    if (state_of->audit == NULL ||
        !swap_in(state_of->audit, space_place(state_of->place)->base, live->stream, SWAP_AUDIT)) {
        stop(live->script, version);
    }
    last_use_note(&space_place(state_of->place)->last, live->stream);
    learn_reject(operation->function, operation->name, "it computed other bytes the second time");
    state.wants_new_plan = true;
    return true;
}

bool proven_rebuilt(struct live *live, uint32_t version)
{
    const struct script_version *script = &live->script->versions[version];
    struct live_version *state_of = &live->versions[version];
    struct place *place = space_place(state_of->place);
    if (state_of->audit != NULL && !live->is_probation) {
        proof_audit(script->print, place->base, state_of->audit->memory, script->bytes, live->stream);
        last_use_note(&place->last, live->stream);
        last_use_note(&state_of->audit->last, live->stream);
        state.counts.audited++;
        state.counts.verified++;
        return true;
    }
    if (state_of->audit != NULL) {
        swap_finish(state_of->audit);
        if (!proof_equals(place->base, state_of->audit->memory, script->bytes, live->stream)) {
            return refute(live, version);
        }
        state.counts.verified++;
        return true;
    }
    if (!proof_is_expected(script->print)) {
        return true;
    }
    if (live->is_probation) {
        if (!proof_verify_now(script->print, place->base, script->bytes, live->stream)) {
            return refute(live, version);
        }
    } else {
        proof_rebuilt(script->print, place->base, script->bytes, live->stream);
        last_use_note(&place->last, live->stream);
    }
    state.counts.verified++;
    return true;
}

bool proven_wants_new_plan(void)
{
    bool wants = state.wants_new_plan;
    state.wants_new_plan = false;
    return wants;
}

struct proven_counts proven_count(void)
{
    return state.counts;
}

static uint32_t version_of(const struct script *script, uint32_t print)
{
    uint32_t version = 0;
    while (version + 1 < script->version_count && script->versions[version].print != print) {
        version++;
    }
    return version;
}

/* An audit has put a host copy back: nothing was lost, and the recipe is not used again after this iteration. */
static void note_repair(const struct script *script, uint32_t print)
{
    const struct script_operation *operation =
        &script->operations[script->versions[version_of(script, print)].producer];
    state.counts.mismatched++;
    state.counts.verified--;
    learn_reject(operation->function, operation->name, "it computed other bytes the second time");
    state.wants_new_plan = true;
}

void proven_look(const struct script *script)
{
    uint32_t print;
    if (!proof_is_open()) {
        return;
    }
    if (script != NULL && proof_repaired(&print)) {
        note_repair(script, print);
    }
    if (proof_mismatch(&print)) {
        state.counts.mismatched++;
        if (script == NULL) {
            say(SAY_ERROR,
                "stopped: what was recomputed differs from what was computed before; no result of it has left the "
                "device");
            engine_stop();
        }
        stop(script, version_of(script, print));
    }
}
