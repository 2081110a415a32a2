/* The parametric minimum cut at one position: what is worth keeping there, at every price of memory.
 *
 * At position `pivot` and price lambda (nanoseconds per byte), an operation o before the pivot is either run
 * again (cost: its time) or what it made that the program still needs is kept (cost: lambda x bytes). Running
 * it again needs its inputs: those that the program needs no more must be held (lambda x bytes) or rebuilt.
 * The cheapest choice is a minimum cut. The solutions are nested: as lambda grows, more is run again.
 *
 * Bound: for every lambda, cut(lambda) - lambda x (cap - what must be there anyway) is at most the time that
 * any plan without swapping adds. */
#pragma once
#include "policy/graph.h"

struct cut {
    uint32_t pivot;
    double *threshold;   /* per operation: price from which on it is run again; HUGE_VAL = at none tried */
    bool *is_held;       /* per version: dead at the pivot and held at the critical price */
    double price;        /* critical price: where what is kept just fits; 0 = everything fits */
    bool *is_held_below; /* the same of the solution before, which keeps too much: lumps of versions go at one price */
    double price_below;  /* at which that one was found; 0 = keeps everything */
    uint64_t bound_ns;   /* certified; UINT64_MAX = no plan without swapping can hold the cap */
};

/* False when memory ran out; then nothing is left allocated. */
bool cut_solve(const struct graph *graph, uint32_t pivot, uint64_t cap, struct cut *out);
/* A bound of the same kind at another position, with less effort, where the price may be near *price; 0 if memory ran
 * out. *price becomes the critical price there. The work is added to *steps (policy/flow.h). */
uint64_t cut_bound_near(const struct graph *graph, uint32_t pivot, uint64_t cap, double *price, uint64_t *steps);
void cut_release(struct cut *cut);
