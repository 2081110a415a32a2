/* A growing list of plan items. */
#pragma once
#include "policy/plan.h"

struct item_list {
    struct plan_item *items;
    uint32_t count, capacity;
};

/* Room for one more; false when memory ran out. */
bool items_grow(struct item_list *list);

/* False when memory ran out; the list is unchanged then. */
static inline bool items_append(struct item_list *list, enum plan_verb verb, uint32_t index)
{
    if (list->count == list->capacity && !items_grow(list))
        return false;
    list->items[list->count++] = (struct plan_item){.verb = (uint32_t)verb, .index = index};
    return true;
}

/* False when memory ran out; `copy` is empty then. */
bool items_copy(struct item_list *copy, const struct item_list *list);
void items_release(struct item_list *list);
