#include "policy/items.h"
#include <stdlib.h>
#include <string.h>

bool items_grow(struct item_list *list)
{
    uint32_t capacity = list->capacity ? list->capacity * 2 : 256;
    struct plan_item *items = capacity > list->capacity ? realloc(list->items, sizeof *items * capacity) : NULL;
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

bool items_copy(struct item_list *copy, const struct item_list *list)
{
    *copy = (struct item_list){.items = malloc(sizeof *copy->items * ((size_t)list->count + 1))};
    if (!copy->items)
        return false;
    if (list->count)
        memcpy(copy->items, list->items, sizeof *copy->items * list->count);
    copy->count = list->count;
    copy->capacity = list->count + 1;
    return true;
}

void items_release(struct item_list *list)
{
    free(list->items);
    *list = (struct item_list){0};
}
