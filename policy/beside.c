#include "policy/beside.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 6000, NODE_STEPS = 30 };

struct asked {
    struct beside *beside;
    const struct beside_question *question;
    uint64_t stuck_bytes;
    struct flow flow;
    bool *is_connected; /* per node of an operation */
};

bool beside_begin(struct beside *b, const struct graph *g)
{
    size_t versions = (size_t)g->problem->version_count + 1, operations = (size_t)g->problem->operation_count + 1;
    *b = (struct beside){.graph = g};
    b->version_node = malloc(sizeof *b->version_node * versions);
    b->operation_node = malloc(sizeof *b->operation_node * operations);
    b->is_free = calloc(versions, 1);
    b->is_stuck = calloc(versions, 1);
    b->queue = malloc(sizeof *b->queue * versions);
    if (!b->version_node || !b->operation_node || !b->is_free || !b->is_stuck || !b->queue)
        return false;
    memset(b->version_node, 0xff, sizeof *b->version_node * versions);
    memset(b->operation_node, 0xff, sizeof *b->operation_node * operations);
    return true;
}

void beside_end(struct beside *b)
{
    free(b->version_node);
    free(b->operation_node);
    free(b->is_free);
    free(b->is_stuck);
    free(b->queue);
    *b = (struct beside){0};
}

/* Sets or clears what is there for nothing. */
static void mark_free(struct asked *a, bool value)
{
    struct beside *b = a->beside;
    const struct policy_problem *p = b->graph->problem;
    const struct policy_operation *maker = &p->operations[a->question->maker];
    for (uint32_t k = 0; k < a->question->stuck_count; k++)
        b->is_stuck[a->question->stuck[k]] = b->is_free[a->question->stuck[k]] = value;
    for (uint32_t k = 0; k < maker->read_count; k++)
        b->is_free[p->reads[maker->first_read + k]] = value;
    for (uint32_t k = 0; k < maker->write_count; k++) {
        uint32_t v = p->writes[maker->first_write + k], old = p->versions[v].replaces;
        b->is_free[v] = value;
        if (old != POLICY_NONE)
            b->is_free[old] = value;
    }
}

/* Does o fit beside what is stuck? */
static bool fits_beside(const struct asked *a, uint32_t o)
{
    const struct policy_problem *p = a->beside->graph->problem;
    const struct policy_operation *op = &p->operations[o];
    uint64_t bytes = a->stuck_bytes + op->workspace_bytes;
    for (uint32_t k = 0; k < op->read_count; k++) {
        uint32_t v = p->reads[op->first_read + k];
        bytes += a->beside->is_stuck[v] || graph_is_always_there(a->beside->graph, v) ? 0 : p->versions[v].bytes;
    }
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        bool is_new = p->versions[v].replaces == POLICY_NONE || a->beside->is_stuck[v];
        bytes += is_new ? p->versions[v].bytes : 0;
    }
    if (bytes > a->question->room && bytes < a->beside->least_over)
        a->beside->least_over = bytes;
    return bytes <= a->question->room;
}

static void meet_version(struct beside *b, uint32_t v)
{
    if (b->is_free[v] || b->version_node[v] != POLICY_NONE || graph_is_always_there(b->graph, v))
        return;
    b->version_node[v] = b->node_count++;
    b->queue[b->version_count++] = v;
}

/* Numbers all that may be held or run; false where it is too much. */
static bool explore(struct asked *a)
{
    struct beside *b = a->beside;
    const struct policy_problem *p = b->graph->problem;
    for (uint32_t k = 0; k < a->question->wanted_count; k++)
        meet_version(b, a->question->wanted[k]);
    for (uint32_t done = 0; done < b->version_count && b->node_count <= MOST_NODES; done++) {
        uint32_t producer = p->versions[b->queue[done]].producer;
        if (producer == POLICY_NONE || b->operation_node[producer] != POLICY_NONE || !fits_beside(a, producer))
            continue;
        const struct policy_operation *op = &p->operations[producer];
        b->operation_node[producer] = b->node_count++;
        for (uint32_t k = 0; k < op->read_count; k++)
            meet_version(b, p->reads[op->first_read + k]);
        b->steps += op->read_count + op->write_count;
    }
    return b->node_count <= MOST_NODES;
}

static void connect_inputs(struct asked *a, uint32_t o)
{
    struct beside *b = a->beside;
    const struct policy_operation *op = &b->graph->problem->operations[o];
    for (uint32_t k = 0; k < op->read_count; k++) {
        uint32_t node = b->version_node[b->graph->problem->reads[op->first_read + k]];
        if (node != POLICY_NONE)
            flow_connect(&a->flow, b->operation_node[o], node, FLOW_INFINITE);
    }
}

static void connect(struct asked *a)
{
    struct beside *b = a->beside;
    const struct policy_problem *p = b->graph->problem;
    for (uint32_t k = 0; k < b->version_count; k++) {
        uint32_t v = b->queue[k], producer = p->versions[v].producer, to = b->node_count;
        if (producer != POLICY_NONE && b->operation_node[producer] != POLICY_NONE) {
            to = b->operation_node[producer];
            if (!a->is_connected[to])
                connect_inputs(a, producer);
            a->is_connected[to] = true;
        }
        flow_connect(&a->flow, b->version_node[v], to, (int64_t)p->versions[v].bytes);
    }
    for (uint32_t k = 0; k < a->question->wanted_count; k++) {
        uint32_t v = a->question->wanted[k];
        if (b->version_node[v] != POLICY_NONE)
            flow_supply(&a->flow, b->version_node[v], (int64_t)p->versions[v].bytes);
    }
}

static void forget(struct beside *b)
{
    for (uint32_t k = 0; k < b->version_count; k++) {
        uint32_t v = b->queue[k], producer = b->graph->problem->versions[v].producer;
        b->version_node[v] = POLICY_NONE;
        if (producer != POLICY_NONE)
            b->operation_node[producer] = POLICY_NONE;
    }
    b->version_count = b->node_count = 0;
}

uint64_t beside_held_bytes(struct beside *b, const struct beside_question *question)
{
    struct asked a = {.beside = b, .question = question};
    int64_t held = 0;
    b->steps = 0;
    b->least_over = UINT64_MAX;
    for (uint32_t k = 0; k < question->stuck_count; k++)
        a.stuck_bytes += b->graph->problem->versions[question->stuck[k]].bytes;
    mark_free(&a, true);
    if (explore(&a) && b->node_count) {
        a.is_connected = calloc(b->node_count, sizeof *a.is_connected);
        b->has_failed = !flow_begin(&a.flow, b->node_count) || !a.is_connected;
        if (!b->has_failed)
            connect(&a);
        b->has_failed |= a.flow.has_failed;
        held = b->has_failed ? 0 : flow_solve(&a.flow);
        b->steps += (uint64_t)b->node_count * NODE_STEPS;
        flow_end(&a.flow);
        free(a.is_connected);
    }
    forget(b);
    mark_free(&a, false);
    return (uint64_t)held;
}
