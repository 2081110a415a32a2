/* What every view has: order, bytes held, the peak, sites. */
#include "trace/model_build.h"
#include <stdlib.h>
#include <string.h>

void view_add_span(struct model_view *view, const struct model_span *span)
{
    if (span->ends > span->born && span->bytes > 0)
        view->spans[view->span_count++] = *span;
}

static int by_birth(const void *left, const void *right)
{
    const struct model_span *a = left, *b = right;
    if (a->born != b->born)
        return a->born < b->born ? -1 : 1;
    if (a->ends != b->ends)
        return a->ends > b->ends ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    return (a->allocation > b->allocation) - (a->allocation < b->allocation);
}

bool view_complete(struct model_view *view)
{
    view->held = calloc(view->position_count + (size_t)1, sizeof *view->held);
    if (!view->held)
        return false;
    qsort(view->spans, view->span_count, sizeof *view->spans, by_birth);
    for (uint32_t i = 0; i < view->span_count; i++) {
        view->held[view->spans[i].born] += view->spans[i].bytes;
        view->held[view->spans[i].ends] -= view->spans[i].bytes; /* modulo 2^64 until they are added up */
    }
    uint64_t held = 0;
    for (uint32_t p = 0; p < view->position_count; p++) {
        held += view->held[p];
        view->held[p] = held;
        if (held > view->held[view->peak_position])
            view->peak_position = p;
    }
    view->peak_bytes = view->position_count ? view->held[view->peak_position] : 0;
    return true;
}

/* Sites by name and place. */

struct site_table {
    struct model_site *sites;
    double (*kind_weight)[KIND_COUNT]; /* per site: bytes x time of each kind */
    uint32_t *slots;                   /* by hash of name and place: site + 1 */
    uint32_t count, capacity, slot_count;
};

static uint32_t *slot_of(const struct site_table *table, uint32_t name, uint32_t place)
{
    uint64_t hash = ((uint64_t)name << 32 | place) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 33) & (table->slot_count - 1);
    while (table->slots[at] &&
           (table->sites[table->slots[at] - 1].name != name || table->sites[table->slots[at] - 1].place != place))
        at = (at + 1) & (table->slot_count - 1);
    return &table->slots[at];
}

static bool grow(struct site_table *table)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : 256;
    struct model_site *sites = realloc(table->sites, capacity * sizeof *sites);
    table->sites = sites ? sites : table->sites;
    void *weights = sites ? realloc(table->kind_weight, capacity * sizeof *table->kind_weight) : NULL;
    table->kind_weight = weights ? weights : table->kind_weight;
    uint32_t *slots = weights ? calloc(capacity * (size_t)2, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->slot_count = capacity * 2;
    table->capacity = capacity;
    for (uint32_t i = 0; i < table->count; i++)
        *slot_of(table, table->sites[i].name, table->sites[i].place) = i + 1;
    return true;
}

static struct model_site *site_of(struct site_table *table, uint32_t name, uint32_t place, uint32_t stack)
{
    uint32_t *slot = slot_of(table, name, place);
    if (!*slot) {
        if (table->count == table->capacity) {
            if (!grow(table))
                return NULL;
            slot = slot_of(table, name, place);
        }
        table->sites[table->count] = (struct model_site){.name = name, .place = place, .stack = stack};
        memset(table->kind_weight[table->count], 0, sizeof *table->kind_weight);
        *slot = ++table->count;
    }
    return &table->sites[*slot - 1];
}

/* What nobody whom we saw has made is named by its kind. */
static void name_span(struct builder *builder, const struct model_view *view, struct model_span *span)
{
    if (span->name)
        return;
    if (span->producer != TRACE_NONE && view->operations[span->producer].name)
        span->name = view->operations[span->producer].name;
    else if (span->allocation == TRACE_NONE && span->life == TRACE_NONE)
        span->name = builder_string(builder, "rounding, bookkeeping, reserve");
    else
        span->name = builder_string(builder, kind_name((enum kind)span->kind));
}

static bool count_span(struct builder *builder, const struct model_view *view, struct site_table *table,
                       struct model_span *span)
{
    name_span(builder, view, span);
    struct model_site *site = site_of(table, span->name, builder->model->stacks[span->stack].place, span->stack);
    if (!site)
        return false;
    span->site = (uint32_t)(site - table->sites);
    double weight = model_byte_seconds(view, span);
    site->span_count++;
    site->byte_seconds += weight;
    site->life_seconds += model_life_seconds(view, span);
    site->most_bytes = span->bytes > site->most_bytes ? span->bytes : site->most_bytes;
    table->kind_weight[span->site][span->kind] += weight;
    if (model_is_at(span, view->peak_position)) {
        site->peak_count++;
        site->peak_bytes += span->bytes;
        site->verdict_bytes[span->verdict] += span->bytes;
    }
    return true;
}

static int by_bytes(const void *left, const void *right, void *sites)
{
    const struct model_site *a = (const struct model_site *)sites + *(const uint32_t *)left;
    const struct model_site *b = (const struct model_site *)sites + *(const uint32_t *)right;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    if (a->byte_seconds < b->byte_seconds || a->byte_seconds > b->byte_seconds)
        return a->byte_seconds > b->byte_seconds ? -1 : 1;
    return (a > b) - (a < b);
}

/* Sites in their final order; spans get the new numbers. */
static bool put_in_order(struct model_view *view, const struct site_table *table)
{
    uint32_t *order = malloc((table->count + (size_t)1) * sizeof *order);
    uint32_t *number = malloc((table->count + (size_t)1) * sizeof *number);
    struct model_site *sites = malloc((table->count + (size_t)1) * sizeof *sites);
    bool has_memory = order && number && sites;
    if (has_memory) {
        for (uint32_t i = 0; i < table->count; i++)
            order[i] = i;
        qsort_r(order, table->count, sizeof *order, by_bytes, table->sites);
        for (uint32_t i = 0; i < table->count; i++) {
            sites[i] = table->sites[order[i]];
            number[order[i]] = i;
        }
        for (uint32_t i = 0; i < view->span_count; i++)
            view->spans[i].site = number[view->spans[i].site];
        view->sites = sites;
        view->site_count = table->count;
        sites = NULL;
    }
    free(order);
    free(number);
    free(sites);
    return has_memory;
}

static void choose_kinds(const struct site_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++)
            if (table->kind_weight[i][kind] > table->kind_weight[i][table->sites[i].kind])
                table->sites[i].kind = kind;
}

static void sum_peak(struct model_view *view)
{
    for (uint32_t i = 0; i < view->span_count; i++) {
        const struct model_span *span = &view->spans[i];
        if (!model_is_at(span, view->peak_position))
            continue;
        view->kind_bytes[span->kind] += span->bytes;
        view->kind_count[span->kind]++;
        view->verdict_bytes[span->verdict] += span->bytes;
    }
}

bool view_find_sites(struct builder *builder, struct model_view *view)
{
    struct site_table table = {0};
    bool is_made = grow(&table);
    for (uint32_t i = 0; is_made && i < view->span_count; i++)
        is_made = count_span(builder, view, &table, &view->spans[i]);
    if (is_made) {
        choose_kinds(&table);
        is_made = put_in_order(view, &table);
        sum_peak(view);
    }
    free(table.sites);
    free(table.kind_weight);
    free(table.slots);
    return is_made;
}

/* The greatest by bytes x time, kept in a heap whose root is the least of them. */

struct ranked {
    double weight;
    uint32_t span;
};

static bool is_less(const struct ranked *a, const struct ranked *b)
{
    if (a->weight < b->weight || a->weight > b->weight)
        return a->weight < b->weight;
    return a->span > b->span;
}

static void sink(struct ranked *heap, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            return;
        struct ranked swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
    }
}

static int by_rank(const void *left, const void *right)
{
    return is_less(left, right) ? 1 : -1;
}

uint32_t model_longest(const struct model_view *view, enum kind kind, uint32_t *out, uint32_t most)
{
    struct ranked *heap = malloc((most + (size_t)1) * sizeof *heap);
    uint32_t count = 0;
    for (uint32_t i = 0; heap && most > 0 && i < view->span_count; i++) {
        const struct model_span *span = &view->spans[i];
        struct ranked ranked = {model_byte_seconds(view, span), i};
        if (kind != KIND_COUNT && span->kind != kind)
            continue;
        if (count < most) {
            heap[count++] = ranked;
            for (uint32_t at = count / 2; count == most && at-- > 0;)
                sink(heap, count, at);
        } else if (is_less(&heap[0], &ranked)) {
            heap[0] = ranked;
            sink(heap, count, 0);
        }
    }
    if (heap)
        qsort(heap, count, sizeof *heap, by_rank);
    for (uint32_t i = 0; i < count; i++)
        out[i] = heap[i].span;
    free(heap);
    return count;
}
