/* Kinds of spans whose allocation is not known in the run: by their versions. The rules stand in trace/model.h. */
#include "trace/model_build.h"
#include <stdlib.h>

static bool is_read_later(const struct model_span *span)
{
    return span->last_read != TRACE_NONE && (span->producer == TRACE_NONE || span->last_read > span->producer);
}

/* Bytes that are carried across each position from their producer to a later reader; the first position of the most. */
static bool find_turn(struct model_view *view)
{
    uint64_t *change = calloc(view->position_count + (size_t)2, sizeof *change), carried = 0, most = 0;
    if (!change)
        return false;
    for (uint32_t i = 0; i < view->span_count; i++) {
        const struct model_span *span = &view->spans[i];
        if (span->version == TRACE_NONE || span->producer == TRACE_NONE || !is_read_later(span))
            continue;
        change[span->producer + 1] += span->bytes;
        change[span->last_read + 1] -= span->bytes;
    }
    for (uint32_t p = 0; p < view->position_count; p++) {
        carried += change[p]; /* modulo 2^64 */
        if (carried > most) {
            most = carried;
            view->turn = p;
        }
    }
    free(change);
    return true;
}

static enum kind kind_of(const struct model *model, const struct model_view *view, const struct model_span *span)
{
    if (span->allocation == TRACE_NONE)
        return span->life == TRACE_NONE ? KIND_OWN : KIND_UNKNOWN;
    if (model->recorded->allocations[span->allocation].kind == TRACE_GIVEN)
        return KIND_WEIGHTS;
    if (span->version == TRACE_NONE)
        return KIND_UNKNOWN;
    if (!is_read_later(span))
        return KIND_WORKSPACE;
    bool is_early = span->producer == TRACE_NONE || span->producer < view->turn;
    return is_early && span->last_read >= view->turn ? KIND_ACTIVATION : KIND_TEMPORARY;
}

bool view_find_kinds(const struct model *model, const unsigned char *kinds, struct model_view *view)
{
    if (!find_turn(view))
        return false;
    for (uint32_t i = 0; i < view->span_count; i++) {
        struct model_span *span = &view->spans[i];
        span->kind = (uint8_t)(span->life != TRACE_NONE && kinds ? kinds[span->life] : kind_of(model, view, span));
    }
    return true;
}
