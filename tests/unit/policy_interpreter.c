#include "tests/unit/policy_interpreter.h"
#include <stdlib.h>
#include <string.h>

struct interpreter {
    const struct policy_problem *p;
    uint64_t *value; /* content; 0 = not there */
    uint64_t *host;  /* copy on the host; 0 = none */
    uint64_t *truth; /* what the undropped run computes */
    uint32_t position;
    uint64_t peak;
    uint64_t cap, clock, out_free, in_free, run_ns;
    uint64_t *ready;     /* when the last copy of a version is complete */
    struct copy *copies; /* all to the host so far */
    uint32_t copy_count;
    struct interpreted *out;
};

struct copy {
    uint64_t done, bytes;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    a *= 0xff51afd7ed558ccdu;
    return (a ^ (a >> 33)) | 1;
}

static uint64_t compute(const struct policy_problem *p, uint32_t o, const uint64_t *value, uint32_t output)
{
    const struct policy_operation *op = &p->operations[o];
    uint64_t h = mix(o + 1, 77);
    for (uint32_t k = 0; k < op->read_count; k++)
        h = mix(h, value[p->reads[op->first_read + k]]);
    uint32_t old = p->versions[output].replaces;
    if (old != POLICY_NONE)
        h = mix(h, value[old]);
    return mix(h, output);
}

static uint64_t resident(const struct interpreter *t)
{
    uint64_t sum = t->p->fixed_bytes;
    for (uint32_t v = 0; v < t->p->version_count; v++)
        sum += t->value[v] ? t->p->versions[v].bytes : 0;
    return sum;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The first moment from `now` on at which what is still being copied out leaves room for `bytes`. */
static uint64_t when_free(const struct interpreter *t, uint64_t bytes, uint64_t now)
{
    for (;;) {
        uint64_t taken = bytes, next = UINT64_MAX;
        for (uint32_t k = 0; k < t->copy_count; k++)
            if (t->copies[k].done > now) {
                taken += t->copies[k].bytes;
                next = t->copies[k].done < next ? t->copies[k].done : next;
            }
        if (taken <= t->cap || next == UINT64_MAX)
            return now;
        now = next;
    }
}

static void pass_time(struct interpreter *t, uint32_t o, uint64_t during, bool again)
{
    const struct policy_problem *p = t->p;
    const struct policy_operation *op = &p->operations[o];
    uint64_t start = when_free(t, during, t->clock);
    for (uint32_t k = 0; k < op->read_count; k++)
        start = later(start, t->ready[p->reads[op->first_read + k]]);
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t old = p->versions[p->writes[op->first_write + k]].replaces;
        start = old == POLICY_NONE ? start : later(start, t->ready[old]);
    }
    t->clock = start + op->nanoseconds;
    t->run_ns += again ? 0 : op->nanoseconds;
    t->out->replay_count += again;
}

static void copy_out(struct interpreter *t, uint32_t v)
{
    uint64_t bytes = t->p->versions[v].bytes;
    t->out_free = later(later(t->clock, t->out_free), t->ready[v]) + (uint64_t)((double)bytes / t->p->out_bytes_per_ns);
    t->ready[v] = t->out_free;
    t->copies[t->copy_count++] = (struct copy){t->out_free, bytes};
    t->out->swapped_out_bytes += bytes;
}

static void copy_in(struct interpreter *t, uint32_t v, uint64_t during)
{
    uint64_t bytes = t->p->versions[v].bytes;
    uint64_t start = later(when_free(t, during, later(t->clock, t->ready[v])), t->in_free);
    t->in_free = t->ready[v] = start + (uint64_t)((double)bytes / t->p->in_bytes_per_ns);
    t->out->swapped_in_bytes += bytes;
}

static const char *run_operation(struct interpreter *t, uint32_t o, bool again)
{
    const struct policy_problem *p = t->p;
    const struct policy_operation *op = &p->operations[o];
    uint64_t during = resident(t) + op->workspace_bytes + (again ? op->scratch_bytes : 0);
    for (uint32_t k = 0; k < op->read_count; k++)
        if (!t->value[p->reads[op->first_read + k]])
            return "reads what is not there";
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        if (!t->value[v] && old != POLICY_NONE && !t->value[old])
            return "replaces what is not there";
        if (t->value[v] || old == POLICY_NONE)
            during += p->versions[v].bytes;
    }
    t->peak = during > t->peak ? during : t->peak;
    pass_time(t, o, during, again);
    uint64_t fresh[64];
    if (op->write_count > 64)
        return "test operation too large";
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        fresh[k] = t->value[v] ? 0 : compute(p, o, t->value, v);
    }
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        if (!fresh[k])
            continue;
        if (again && fresh[k] != t->truth[v])
            return "replay gives another value";
        t->value[v] = t->truth[v] = fresh[k];
        if (old != POLICY_NONE)
            t->value[old] = t->host[old] = 0;
    }
    return NULL;
}

static const char *step(struct interpreter *t, struct plan_item item)
{
    const struct policy_problem *p = t->p;
    const struct policy_version *version = item.index < p->version_count ? &p->versions[item.index] : NULL;
    const char *wrong;
    switch (item.verb) {
    case PLAN_RUN:
        if (item.index != t->position)
            return "run out of order";
        wrong = run_operation(t, item.index, false);
        t->position++;
        return wrong;
    case PLAN_REPLAY:
        if (item.index >= t->position || t->position > p->operations[item.index].replayable_until)
            return "replay where it may not";
        return run_operation(t, item.index, true);
    case PLAN_DROP:
    case PLAN_SWAP_OUT:
        if (!version || !t->value[item.index])
            return "drop of what is not there";
        if (version->droppable_from == POLICY_NONE || t->position < version->droppable_from)
            return "drop of what is pinned";
        if (item.verb == PLAN_SWAP_OUT) {
            if (!version->is_swappable)
                return "swap of what may not";
            if (!t->host[item.index])
                copy_out(t, item.index);
            t->host[item.index] = t->value[item.index];
        }
        t->value[item.index] = 0;
        return NULL;
    case PLAN_SWAP_IN:
        if (!version || t->value[item.index] || !t->host[item.index])
            return "swap-in without a copy";
        t->value[item.index] = t->host[item.index];
        t->peak = resident(t) > t->peak ? resident(t) : t->peak;
        copy_in(t, item.index, resident(t));
        return NULL;
    default:
        return "unknown verb";
    }
}

/* Drops before all else of what may start on the host. */
static uint32_t start_on_host(struct interpreter *t, const struct plan_item *items, uint32_t count, bool *is_away)
{
    uint32_t k = 0;
    for (; k < count && items[k].verb == PLAN_DROP && items[k].index < t->p->version_count; k++) {
        uint32_t v = items[k].index;
        if (!t->p->versions[v].may_start_on_host || !t->value[v] || !(t->p->in_bytes_per_ns > 0))
            break;
        t->host[v] = t->value[v];
        t->value[v] = 0;
        is_away[v] = true;
    }
    return k;
}

static bool must_end_on_host(const struct policy_problem *p, const bool *is_away, uint32_t v)
{
    while (p->versions[v].replaces != POLICY_NONE)
        v = p->versions[v].replaces;
    return is_away[v];
}

static const char *end(const struct interpreter *t, const bool *is_away)
{
    const struct policy_problem *p = t->p;
    if (t->position != p->operation_count)
        return "not everything was run";
    for (uint32_t v = 0; v < p->version_count; v++) {
        bool is_host = must_end_on_host(p, is_away, v);
        if (p->versions[v].is_kept && !(is_host ? t->host[v] : t->value[v]))
            return "a kept version is missing at the end";
        if ((t->value[v] && t->value[v] != t->truth[v]) || (t->host[v] && t->host[v] != t->truth[v]))
            return "a version holds another value";
    }
    return NULL;
}

static const char *interpret(struct interpreter *t, const struct plan_item *items, uint32_t count, bool *is_away)
{
    const struct policy_problem *p = t->p;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].producer == POLICY_NONE)
            t->value[v] = t->truth[v] = mix(v, 12345);
    uint32_t first = start_on_host(t, items, count, is_away);
    t->peak = resident(t);
    for (uint32_t k = first; k < count; k++) {
        const char *wrong = step(t, items[k]);
        if (wrong)
            return wrong;
    }
    return end(t, is_away);
}

const char *interpret_plan(const struct policy_problem *p, const struct plan_item *items, uint32_t count, uint64_t cap,
                           struct interpreted *out)
{
    size_t versions = (size_t)p->version_count + 1;
    *out = (struct interpreted){0};
    struct interpreter t = {.p = p, .cap = cap, .out = out};
    t.value = calloc(versions * 4, sizeof *t.value);
    t.copies = malloc(sizeof *t.copies * ((size_t)count + 1));
    bool *is_away = calloc(versions, sizeof *is_away);
    const char *wrong = "out of memory";
    if (t.value && t.copies && is_away) {
        t.host = t.value + versions;
        t.truth = t.host + versions;
        t.ready = t.truth + versions;
        wrong = interpret(&t, items, count, is_away);
        out->peak_bytes = t.peak;
        out->added_nanoseconds = later(later(t.clock, t.in_free), t.out_free) - t.run_ns;
        if (!wrong && t.peak > cap)
            wrong = "passes the cap";
    }
    free(t.value);
    free(t.copies);
    free(is_away);
    return wrong;
}
