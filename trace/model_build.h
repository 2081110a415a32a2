/* Making a model (trace/model.h). Behind trace/model.c; nobody else needs this. */
#pragma once
#include "trace/model.h"

struct builder {
    struct model *model;
    bool is_out_of_memory; /* what was asked for since then is 0 */
    uint32_t *slots;       /* strings by hash: number + 1, 0 free */
    uint32_t slot_count;   /* a power of two */
    unsigned char *kinds;  /* per life of the trace */
    uint32_t *plain;       /* per name of the trace: its plain form as a string + 1, 0 not known yet */
};

/* Room for what is asked from now on; string 0. */
bool builder_begin(struct builder *builder);
void builder_end(struct builder *builder);

/* The number of a string, the same for equal ones. */
uint32_t builder_string(struct builder *builder, const char *text);
/* A name of the trace as it is, and the number of its plain form (report_plain_name). */
const char *builder_name(const struct builder *builder, uint32_t name);
uint32_t builder_plain(struct builder *builder, uint32_t name);

/* The parts in the order in which they need each other. False if there is no memory. */
bool model_add_stacks(struct builder *builder);
bool model_add_iteration(struct builder *builder); /* with kinds */
bool model_add_run(struct builder *builder);
bool model_add_rows(struct builder *builder); /* model.iterations */

/* A view whose spans, operations and clock are there: in order, with held and the peak. */
bool view_complete(struct model_view *view);
/* Sites and the sums at the peak, once the spans have kinds. */
bool view_find_sites(struct builder *builder, struct model_view *view);
/* Kinds of the iteration's spans. kinds: per life of the trace. */
bool view_find_kinds(const struct model *model, const unsigned char *kinds, struct model_view *view);
void view_add_span(struct model_view *view, const struct model_span *span);
