#include "policy/assign.h"

#include <stdlib.h>

struct page_order {
    uint32_t page, first, count; /* slice of the spans */
    uint32_t end;                /* of its last span */
};

struct assigner {
    const struct assign_problem *problem;
    struct page_order *order;
    uint32_t *first_span; /* per frame: spans that are taken, chained by next_span; plus one */
    uint32_t *next_span;
    uint64_t effort;
    bool is_exhausted;
};

/* Backwards in time, as the end of an iteration is where memory is short: an interval graph coloured in that order
 * needs no more frames than the most that are in use at once. */
static int compare_orders(const void *left, const void *right)
{
    const struct page_order *a = left, *b = right;
    if (a->end != b->end) {
        return a->end > b->end ? -1 : 1;
    }
    return a->page < b->page ? -1 : a->page > b->page;
}

static uint32_t order_pages(struct assigner *assigner)
{
    const struct assign_problem *problem = assigner->problem;
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->span_count; i++) {
        const struct assign_span *span = &problem->spans[i];
        if (i == 0 || span->page != problem->spans[i - 1].page) {
            assigner->order[count++] = (struct page_order){.page = span->page, .first = i};
        }
        assigner->order[count - 1].count++;
        assigner->order[count - 1].end = span->end;
    }
    qsort(assigner->order, count, sizeof *assigner->order, compare_orders);
    return count;
}

static bool is_free(struct assigner *assigner, const struct page_order *page, uint32_t frame)
{
    const struct assign_span *spans = assigner->problem->spans;
    for (uint32_t taken = assigner->first_span[frame]; taken != 0; taken = assigner->next_span[taken - 1]) {
        for (uint32_t i = page->first; i < page->first + page->count; i++) {
            if (spans[i].begin < spans[taken - 1].end && spans[taken - 1].begin < spans[i].end) {
                return false;
            }
        }
        assigner->effort += page->count;
    }
    assigner->effort++;
    return true;
}

static uint32_t choose_frame(struct assigner *assigner, const struct page_order *page)
{
    const struct assign_problem *problem = assigner->problem;
    uint32_t preferred = problem->preferred != NULL ? problem->preferred[page->page] : ASSIGN_NONE;
    if (preferred < problem->frame_count && is_free(assigner, page, preferred)) {
        return preferred;
    }
    for (uint32_t frame = 0; frame < problem->frame_count; frame++) {
        if (is_free(assigner, page, frame)) {
            return frame;
        }
        if (problem->effort != 0 && assigner->effort > problem->effort) {
            assigner->is_exhausted = true;
            return ASSIGN_NONE;
        }
    }
    return ASSIGN_NONE;
}

static void take(struct assigner *assigner, const struct page_order *page, uint32_t frame)
{
    for (uint32_t i = page->first; i < page->first + page->count; i++) {
        assigner->next_span[i] = assigner->first_span[frame];
        assigner->first_span[frame] = i + 1;
    }
}

static uint32_t assign_all(struct assigner *assigner, uint32_t *frame_of)
{
    uint32_t ordered = order_pages(assigner), assigned = 0;
    for (uint32_t i = 0; i < assigner->problem->page_count; i++) {
        frame_of[i] = ASSIGN_NONE;
    }
    for (uint32_t i = 0; i < ordered && !assigner->is_exhausted; i++) {
        const struct page_order *page = &assigner->order[i];
        uint32_t frame = choose_frame(assigner, page);
        if (frame != ASSIGN_NONE) {
            take(assigner, page, frame);
            frame_of[page->page] = frame;
            assigned++;
        }
    }
    return assigned;
}

uint32_t assign_frames(const struct assign_problem *problem, uint32_t *frame_of)
{
    struct assigner assigner = {.problem = problem};
    uint32_t assigned = UINT32_MAX;
    assigner.order = malloc(sizeof *assigner.order * ((size_t)problem->span_count + 1));
    assigner.first_span = calloc((size_t)problem->frame_count + 1, sizeof *assigner.first_span);
    assigner.next_span = malloc(sizeof *assigner.next_span * ((size_t)problem->span_count + 1));
    if (assigner.order != NULL && assigner.first_span != NULL && assigner.next_span != NULL) {
        assigned = assign_all(&assigner, frame_of);
    }
    free(assigner.order);
    free(assigner.first_span);
    free(assigner.next_span);
    return assigned;
}
