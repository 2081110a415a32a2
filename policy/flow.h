/* Maximum flow and minimum cut by push-relabel (Goldberg, Tarjan 1988) with global relabelling, on a network
 * whose source capacities and chosen edges may grow between solutions: the flow found so far is kept.
 *
 * Nodes 0 .. node_count - 1 and one sink, which is node node_count. The source is not a node: flow enters
 * by flow_supply. What cannot reach the sink stays where it is; those nodes are the source's side. */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_INFINITE  (INT64_MAX / 4)
#define FLOW_PRICELESS (FLOW_INFINITE / 65536) /* the most that anything with a price is worth */

struct flow_edge {
    uint32_t to, next;
    int64_t capacity; /* residual */
};

struct flow {
    uint32_t node_count; /* without the sink */
    uint32_t edge_count, edge_capacity;
    struct flow_edge *edges; /* edge k and k ^ 1 are each other's reverse */
    uint32_t *first, *current, *distance, *queue;
    bool *is_queued;
    int64_t *excess; /* excess[node_count] is what has reached the sink: the cut's value */
    uint64_t steps;  /* work done so far: nodes and edges looked at */
    bool has_failed; /* memory ran out */
};

/* The capacity that stands for `bytes` at a price per byte. */
static inline int64_t flow_worth(double price, int64_t bytes)
{
    double value = floor(price * (double)bytes);
    return value < (double)FLOW_PRICELESS ? (int64_t)value : FLOW_PRICELESS;
}

bool flow_begin(struct flow *flow, uint32_t node_count);
void flow_end(struct flow *flow);
/* Returns the edge's number. */
uint32_t flow_connect(struct flow *flow, uint32_t from, uint32_t to, int64_t capacity);
void flow_widen(struct flow *flow, uint32_t edge, int64_t more);
void flow_supply(struct flow *flow, uint32_t node, int64_t more);
/* Returns the value of the minimum cut. Afterwards flow_is_source_side tells the sides apart. */
int64_t flow_solve(struct flow *flow);
static inline bool flow_is_source_side(const struct flow *flow, uint32_t node)
{
    return flow->distance[node] > flow->node_count;
}
