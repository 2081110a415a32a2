#include "policy/items.h"
#include <stdlib.h>

bool items_append(struct item_list *list, enum plan_verb verb, uint32_t index)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 256;
        struct plan_item *items = capacity > list->capacity ? realloc(list->items, sizeof *items * capacity) : NULL;
        if (!items)
            return false;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct plan_item){.verb = (uint32_t)verb, .index = index};
    return true;
}

void items_release(struct item_list *list)
{
    free(list->items);
    *list = (struct item_list){0};
}
