#include "policy/graph.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(char *why, size_t why_bytes, const char *format, uint32_t a, uint32_t b)
{
    if (why && why_bytes)
        snprintf(why, why_bytes, format, a, b);
    return false;
}

static bool slices_are_valid(const struct policy_problem *p, char *why, size_t why_bytes)
{
    for (uint32_t o = 0; o < p->operation_count; o++) {
        const struct policy_operation *op = &p->operations[o];
        if ((uint64_t)op->first_read + op->read_count > p->read_count)
            return complain(why, why_bytes, "operation %u: its reads leave the table of %u", o, p->read_count);
        if ((uint64_t)op->first_write + op->write_count > p->write_count)
            return complain(why, why_bytes, "operation %u: its writes leave the table of %u", o, p->write_count);
        for (uint32_t k = 0; k < op->read_count; k++)
            if (p->reads[op->first_read + k] >= p->version_count)
                return complain(why, why_bytes, "operation %u reads unknown version %u", o,
                                p->reads[op->first_read + k]);
        for (uint32_t k = 0; k < op->write_count; k++)
            if (p->writes[op->first_write + k] >= p->version_count)
                return complain(why, why_bytes, "operation %u writes unknown version %u", o,
                                p->writes[op->first_write + k]);
    }
    for (uint32_t v = 0; v < p->version_count; v++) {
        const struct policy_version *version = &p->versions[v];
        if (version->producer != POLICY_NONE && version->producer >= p->operation_count)
            return complain(why, why_bytes, "version %u: unknown producer %u", v, version->producer);
        if (version->replaces != POLICY_NONE && (version->replaces >= p->version_count || version->replaces == v))
            return complain(why, why_bytes, "version %u replaces unknown version %u", v, version->replaces);
        if (version->may_start_on_host &&
            (version->producer != POLICY_NONE || !version->is_swappable || version->droppable_from))
            return complain(why, why_bytes,
                            "version %u may not start on the host: it must be given, swappable and free", v, 0);
        if (version->replaces != POLICY_NONE && version->producer == POLICY_NONE)
            return complain(why, why_bytes, "version %u replaces version %u but has no producer", v, version->replaces);
    }
    return true;
}

static bool sums_fit(const struct policy_problem *p, char *why, size_t why_bytes)
{
    const uint64_t limit = UINT64_MAX / 8;
    uint64_t bytes = p->fixed_bytes, nanoseconds = 0, transient = 0;
    if (bytes > limit)
        return complain(why, why_bytes, "fixed bytes too large", 0, 0);
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (p->versions[v].bytes > limit || (bytes += p->versions[v].bytes) > limit)
            return complain(why, why_bytes, "version %u: bytes too large", v, 0);
    }
    for (uint32_t o = 0; o < p->operation_count; o++) {
        const struct policy_operation *op = &p->operations[o];
        if (op->workspace_bytes > limit || op->scratch_bytes > limit ||
            (transient = op->workspace_bytes + op->scratch_bytes) > limit)
            return complain(why, why_bytes, "operation %u: workspace too large", o, 0);
        if (op->nanoseconds > limit / 1024 || (nanoseconds += op->nanoseconds) > limit / 1024)
            return complain(why, why_bytes, "operation %u: duration too large", o, 0);
    }
    return true;
}

/* writer[v] = times v stands in a write list; checks production, order and in-place rules. */
static bool order_is_valid(const struct policy_problem *p, uint32_t *writer, uint32_t *replaced_at, uint32_t *seen,
                           char *why, size_t why_bytes)
{
    for (uint32_t v = 0; v < p->version_count; v++)
        writer[v] = replaced_at[v] = seen[v] = POLICY_NONE;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        const struct policy_operation *op = &p->operations[o];
        for (uint32_t k = 0; k < op->read_count; k++) {
            uint32_t v = p->reads[op->first_read + k];
            if (p->versions[v].producer != POLICY_NONE && writer[v] == POLICY_NONE)
                return complain(why, why_bytes, "operation %u reads version %u before it is produced", o, v);
            if (replaced_at[v] != POLICY_NONE)
                return complain(why, why_bytes, "operation %u reads version %u after it was replaced", o, v);
            if (seen[v] == o)
                return complain(why, why_bytes, "operation %u reads version %u twice", o, v);
            seen[v] = o;
        }
        for (uint32_t k = 0; k < op->write_count; k++) {
            uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
            if (writer[v] != POLICY_NONE || p->versions[v].producer != o)
                return complain(why, why_bytes, "operation %u writes version %u, which is not its to produce", o, v);
            writer[v] = o;
            if (old == POLICY_NONE)
                continue;
            if (p->versions[old].producer != POLICY_NONE && (writer[old] == POLICY_NONE || writer[old] == o))
                return complain(why, why_bytes, "version %u replaces version %u before that is produced", v, old);
            if (replaced_at[old] != POLICY_NONE)
                return complain(why, why_bytes, "version %u replaces version %u, which is replaced already", v, old);
            if (p->versions[old].bytes != p->versions[v].bytes)
                return complain(why, why_bytes, "version %u replaces version %u of another size", v, old);
            replaced_at[old] = o;
        }
    }
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].producer != POLICY_NONE && writer[v] == POLICY_NONE)
            return complain(why, why_bytes, "version %u: not among the writes of its producer %u", v,
                            p->versions[v].producer);
    return true;
}

bool policy_problem_is_valid(const struct policy_problem *p, char *why, size_t why_bytes)
{
    if (!slices_are_valid(p, why, why_bytes) || !sums_fit(p, why, why_bytes))
        return false;
    if (!(p->out_bytes_per_ns >= 0) || !(p->in_bytes_per_ns >= 0))
        return complain(why, why_bytes, "swap bandwidth is not a positive number", 0, 0);
    uint32_t *table = malloc(sizeof *table * 3 * ((size_t)p->version_count + 1));
    if (!table)
        return complain(why, why_bytes, "out of memory", 0, 0);
    bool is_valid =
        order_is_valid(p, table, table + p->version_count, table + 2 * (size_t)p->version_count, why, why_bytes);
    free(table);
    return is_valid;
}

static bool is_read_by(const struct policy_problem *p, const struct policy_operation *op, uint32_t version)
{
    for (uint32_t k = 0; k < op->read_count; k++)
        if (p->reads[op->first_read + k] == version)
            return true;
    return false;
}

static void fill_needs(struct graph *g)
{
    const struct policy_problem *p = g->problem;
    uint32_t count = 0;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        const struct policy_operation *op = &p->operations[o];
        g->need_first[o] = count;
        g->growth[o] = op->workspace_bytes;
        for (uint32_t k = 0; k < op->read_count; k++)
            g->needs[count++] = p->reads[op->first_read + k];
        for (uint32_t k = 0; k < op->write_count; k++) {
            uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
            g->growth[o] += old == POLICY_NONE ? p->versions[v].bytes : 0;
            if (old == POLICY_NONE)
                continue;
            g->is_in_place[o] = true;
            g->replaced_by[old] = v;
            if (!is_read_by(p, op, old))
                g->needs[count++] = old;
        }
    }
    g->need_first[p->operation_count] = count;
}

static void fill_readers(struct graph *g)
{
    const struct policy_problem *p = g->problem;
    uint32_t *first = g->reader_first;
    memset(first, 0, sizeof *first * ((size_t)p->version_count + 1));
    uint32_t total = g->need_first[p->operation_count];
    for (uint32_t k = 0; k < total; k++)
        first[g->needs[k] + 1]++;
    for (uint32_t v = 0; v < p->version_count; v++)
        first[v + 1] += first[v];
    for (uint32_t o = 0; o < p->operation_count; o++)
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
            g->readers[first[g->needs[k]]++] = o;
    for (uint32_t v = p->version_count; v > 0; v--)
        first[v] = first[v - 1];
    first[0] = 0;
}

uint32_t graph_replaced_at(const struct graph *g, uint32_t version)
{
    uint32_t by = g->replaced_by[version];
    return by == POLICY_NONE ? g->problem->operation_count : g->problem->versions[by].producer;
}

static void fill_host_roots(struct graph *g)
{
    const struct policy_problem *p = g->problem;
    for (uint32_t v = 0; v < p->version_count; v++)
        g->host_root[v] = p->versions[v].may_start_on_host ? v : POLICY_NONE;
    for (uint32_t o = 0; o < p->operation_count; o++)
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k];
            if (p->versions[v].replaces != POLICY_NONE)
                g->host_root[v] = g->host_root[p->versions[v].replaces];
        }
}

static void fill_limits(struct graph *g)
{
    const struct policy_problem *p = g->problem;
    for (uint32_t v = 0; v < p->version_count; v++) {
        uint32_t producer = p->versions[v].producer;
        if (p->versions[v].is_kept)
            g->last_need[v] = p->operation_count;
        else if (g->reader_first[v + 1] > g->reader_first[v])
            g->last_need[v] = g->readers[g->reader_first[v + 1] - 1];
        else
            g->last_need[v] = producer == POLICY_NONE ? 0 : producer;
    }
    for (uint32_t o = 0; o < p->operation_count; o++) {
        g->clock[o + 1] = g->clock[o] + p->operations[o].nanoseconds;
        uint32_t until = p->operations[o].replayable_until;
        if (until > p->operation_count)
            until = p->operation_count;
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
            if (k >= g->need_first[o] + p->operations[o].read_count)
                break; /* the rest is needed only by the output that replaces it, see below */
            uint32_t v = g->needs[k], replaced = graph_replaced_at(g, v), rebuilt = g->rebuildable_until[v];
            uint32_t at_hand = replaced > rebuilt ? replaced : rebuilt;
            if (at_hand < until)
                until = at_hand;
        }
        g->until[o] = until > o ? until : 0;
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k], old = p->versions[v].replaces;
            g->rebuildable_until[v] = g->until[o];
            if (old != POLICY_NONE && g->rebuildable_until[old] < g->until[o])
                g->rebuildable_until[v] = g->rebuildable_until[old];
        }
    }
}

/* What is overwritten is at hand again for as long as wanted once it was rebuilt after that. */
static void fill_latest(struct graph *g)
{
    const struct policy_problem *p = g->problem;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        const struct policy_operation *op = &p->operations[o];
        uint32_t latest = op->replayable_until < p->operation_count ? op->replayable_until : p->operation_count;
        for (uint32_t k = 0; k < op->read_count; k++) {
            uint32_t v = p->reads[op->first_read + k], replaced = graph_replaced_at(g, v);
            if (g->replaced_by[v] != POLICY_NONE && g->latest_rebuild[v] <= replaced && replaced < latest)
                latest = replaced;
        }
        g->latest_replay[o] = latest > o ? latest : 0;
        for (uint32_t k = 0; k < op->write_count; k++) {
            uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
            bool is_lost = old != POLICY_NONE && g->latest_rebuild[old] <= o;
            g->latest_rebuild[v] = is_lost ? 0 : g->latest_replay[o];
        }
    }
}

bool graph_build(struct graph *g, const struct policy_problem *p)
{
    size_t operations = (size_t)p->operation_count + 1, versions = (size_t)p->version_count + 1;
    size_t needs = (size_t)p->read_count + p->write_count + 1;
    for (uint32_t o = 0; o < p->operation_count; o++)
        needs += p->operations[o].read_count; /* slices may overlap */
    *g = (struct graph){.problem = p};
    g->need_first = malloc(sizeof(uint32_t) * operations);
    g->needs = malloc(sizeof(uint32_t) * needs);
    g->reader_first = malloc(sizeof(uint32_t) * (versions + 1));
    g->readers = malloc(sizeof(uint32_t) * needs);
    g->replaced_by = malloc(sizeof(uint32_t) * versions);
    g->host_root = malloc(sizeof(uint32_t) * versions);
    g->last_need = malloc(sizeof(uint32_t) * versions);
    g->until = calloc(operations, sizeof(uint32_t));
    g->rebuildable_until = calloc(versions, sizeof(uint32_t));
    g->latest_replay = calloc(operations, sizeof(uint32_t));
    g->latest_rebuild = calloc(versions, sizeof(uint32_t));
    g->clock = calloc(operations, sizeof(uint64_t));
    g->growth = malloc(sizeof(uint64_t) * operations);
    g->is_in_place = calloc(operations, sizeof(bool));
    if (!g->need_first || !g->needs || !g->reader_first || !g->readers || !g->replaced_by || !g->host_root ||
        !g->last_need || !g->until || !g->rebuildable_until || !g->clock || !g->growth || !g->is_in_place ||
        !g->latest_replay || !g->latest_rebuild) {
        graph_release(g);
        return false;
    }
    memset(g->replaced_by, 0xff, sizeof(uint32_t) * versions);
    fill_needs(g);
    fill_readers(g);
    fill_host_roots(g);
    fill_limits(g);
    fill_latest(g);
    return true;
}

void graph_release(struct graph *g)
{
    free(g->need_first);
    free(g->needs);
    free(g->reader_first);
    free(g->readers);
    free(g->replaced_by);
    free(g->host_root);
    free(g->last_need);
    free(g->until);
    free(g->rebuildable_until);
    free(g->latest_replay);
    free(g->latest_rebuild);
    free(g->clock);
    free(g->growth);
    free(g->is_in_place);
    *g = (struct graph){0};
}

bool graph_undropped_bytes(const struct graph *g, uint64_t *bytes)
{
    const struct policy_problem *p = g->problem;
    uint32_t n = p->operation_count;
    int64_t *change = calloc((size_t)n + 2, sizeof *change), held = (int64_t)p->fixed_bytes;
    if (!change)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++) {
        const struct policy_version *version = &p->versions[v];
        uint32_t from = version->producer == POLICY_NONE ? 0 : version->producer, replaced = graph_replaced_at(g, v);
        bool goes_at_once = version->producer == POLICY_NONE && !graph_is_needed(g, v);
        uint32_t last = goes_at_once ? 0 : g->last_need[v] + 1;
        uint32_t to = last > version->droppable_from ? last : version->droppable_from;
        if (to > n + 1)
            to = n + 1;
        if (g->replaced_by[v] != POLICY_NONE && replaced < to)
            to = replaced; /* from there on its bytes are counted with the replacing version */
        change[from] += (int64_t)version->bytes;
        change[to] -= (int64_t)version->bytes;
    }
    for (uint32_t o = 0; o < n; o++) {
        held += change[o];
        bytes[o] = (uint64_t)held + p->operations[o].workspace_bytes;
    }
    free(change);
    return true;
}

uint64_t graph_undropped_peak(const struct graph *g, uint32_t *position)
{
    const struct policy_problem *p = g->problem;
    uint64_t *bytes = malloc(sizeof *bytes * ((size_t)p->operation_count + 1)), peak = p->fixed_bytes;
    if (!bytes || !graph_undropped_bytes(g, bytes)) {
        free(bytes);
        return UINT64_MAX;
    }
    for (uint32_t v = 0; v < p->version_count; v++)
        peak += p->versions[v].producer == POLICY_NONE ? p->versions[v].bytes : 0;
    if (position)
        *position = 0;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        if (bytes[o] <= peak)
            continue;
        peak = bytes[o];
        if (position)
            *position = o;
    }
    free(bytes);
    return peak;
}
