#include "policy/flow.h"
#include <stdlib.h>
#include <string.h>

#define NO_EDGE UINT32_MAX

bool flow_begin(struct flow *f, uint32_t node_count)
{
    size_t nodes = (size_t)node_count + 1;
    *f = (struct flow){.node_count = node_count};
    f->first = malloc(sizeof(uint32_t) * nodes);
    f->current = malloc(sizeof(uint32_t) * nodes);
    f->distance = calloc(nodes, sizeof(uint32_t));
    f->queue = malloc(sizeof(uint32_t) * nodes);
    f->is_queued = calloc(nodes, sizeof(bool));
    f->excess = calloc(nodes, sizeof(int64_t));
    if (!f->first || !f->current || !f->distance || !f->queue || !f->is_queued || !f->excess)
        return false;
    memset(f->first, 0xff, sizeof(uint32_t) * nodes);
    return true;
}

void flow_end(struct flow *f)
{
    free(f->edges);
    free(f->first);
    free(f->current);
    free(f->distance);
    free(f->queue);
    free(f->is_queued);
    free(f->excess);
    *f = (struct flow){0};
}

static void add_edge(struct flow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    f->edges[f->edge_count] = (struct flow_edge){to, f->first[from], capacity};
    f->first[from] = f->edge_count++;
}

uint32_t flow_connect(struct flow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    if (f->has_failed)
        return 0;
    if (f->edge_count + 2 > f->edge_capacity) {
        uint32_t larger = f->edge_capacity ? f->edge_capacity * 2 : 1024;
        struct flow_edge *edges = larger > f->edge_capacity ? realloc(f->edges, sizeof *edges * larger) : NULL;
        if (!edges) {
            f->has_failed = true;
            return 0;
        }
        f->edges = edges;
        f->edge_capacity = larger;
    }
    add_edge(f, from, to, capacity);
    add_edge(f, to, from, 0);
    return f->edge_count - 2;
}

void flow_widen(struct flow *f, uint32_t edge, int64_t more)
{
    f->edges[edge].capacity += more;
}

void flow_supply(struct flow *f, uint32_t node, int64_t more)
{
    f->excess[node] += more;
}

/* Exact distances to the sink in the residual network; unreachable nodes get node_count + 1. */
static void relabel_all(struct flow *f)
{
    uint32_t head = 0, tail = 0, sink = f->node_count;
    for (uint32_t v = 0; v < sink; v++)
        f->distance[v] = f->node_count + 1;
    f->distance[sink] = 0;
    f->queue[tail++] = sink;
    while (head < tail) {
        uint32_t v = f->queue[head++];
        for (uint32_t e = f->first[v]; e != NO_EDGE; e = f->edges[e].next) {
            uint32_t u = f->edges[e].to;
            if (f->edges[e ^ 1].capacity > 0 && f->distance[u] > f->node_count && u != sink) {
                f->distance[u] = f->distance[v] + 1;
                f->queue[tail++] = u;
            }
        }
    }
    memcpy(f->current, f->first, sizeof(uint32_t) * ((size_t)sink + 1));
    f->steps += f->node_count + f->edge_count;
}

struct fifo {
    uint32_t head, count;
};

static void enqueue(struct flow *f, struct fifo *active, uint32_t v)
{
    if (f->is_queued[v] || v == f->node_count || f->distance[v] > f->node_count)
        return;
    f->is_queued[v] = true;
    f->queue[(active->head + active->count++) % (f->node_count + 1)] = v;
}

static uint32_t dequeue(struct flow *f, struct fifo *active)
{
    uint32_t v = f->queue[active->head];
    active->head = (active->head + 1) % (f->node_count + 1);
    active->count--;
    f->is_queued[v] = false;
    return v;
}

static void relabel(struct flow *f, uint32_t v)
{
    uint32_t least = f->node_count;
    for (uint32_t e = f->first[v]; e != NO_EDGE; e = f->edges[e].next)
        if (f->edges[e].capacity > 0 && f->distance[f->edges[e].to] < least)
            least = f->distance[f->edges[e].to];
    f->distance[v] = least + 1;
    f->current[v] = f->first[v];
}

/* Pushes v's excess on; returns the number of relabellings. */
static uint32_t discharge(struct flow *f, struct fifo *active, uint32_t v)
{
    uint32_t relabels = 0;
    while (f->excess[v] > 0 && f->distance[v] <= f->node_count) {
        uint32_t e = f->current[v];
        f->steps++;
        if (e == NO_EDGE) {
            relabel(f, v);
            relabels++;
            continue;
        }
        struct flow_edge *edge = &f->edges[e];
        if (edge->capacity <= 0 || f->distance[v] != f->distance[edge->to] + 1) {
            f->current[v] = edge->next;
            continue;
        }
        int64_t amount = f->excess[v] < edge->capacity ? f->excess[v] : edge->capacity;
        edge->capacity -= amount;
        f->edges[e ^ 1].capacity += amount;
        f->excess[v] -= amount;
        f->excess[edge->to] += amount;
        enqueue(f, active, edge->to);
    }
    return relabels;
}

static void drain(struct flow *f, uint32_t limit)
{
    struct fifo active = {0, 0};
    uint32_t relabels = 0;
    memset(f->is_queued, 0, sizeof(bool) * ((size_t)f->node_count + 1));
    for (uint32_t v = 0; v < f->node_count; v++)
        if (f->excess[v] > 0)
            enqueue(f, &active, v);
    while (active.count && relabels < limit) {
        uint32_t v = dequeue(f, &active);
        relabels += discharge(f, &active, v);
    }
}

static bool is_stuck(const struct flow *f)
{
    for (uint32_t v = 0; v < f->node_count; v++)
        if (f->excess[v] > 0 && f->distance[v] <= f->node_count)
            return false;
    return true;
}

int64_t flow_solve(struct flow *f)
{
    for (;;) {
        relabel_all(f);
        if (is_stuck(f))
            return f->excess[f->node_count];
        drain(f, f->node_count / 2 + 16);
    }
}
