/* A growing list of plan items. */
#pragma once
#include "policy/plan.h"

struct item_list {
    struct plan_item *items;
    uint32_t count, capacity;
};

/* False when memory ran out; the list is unchanged then. */
bool items_append(struct item_list *list, enum plan_verb verb, uint32_t index);
/* False when memory ran out; `copy` is empty then. */
bool items_copy(struct item_list *copy, const struct item_list *list);
void items_release(struct item_list *list);
