#include "policy/candidates.h"
#include <stdlib.h>

enum { LINE_BYTES = 64, KEYS_BEFORE = 3 }; /* so that the children of 0, and of all others, begin a line */

bool candidates_begin(struct candidates *c, uint32_t capacity)
{
    size_t bytes = ((size_t)capacity + KEYS_BEFORE) * sizeof *c->keys;
    *c = (struct candidates){.capacity = capacity};
    c->block = aligned_alloc(LINE_BYTES, (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
    c->keys = c->block ? (candidate_key *)c->block + KEYS_BEFORE : NULL;
    return c->block;
}

void candidates_end(struct candidates *c)
{
    free(c->block);
    *c = (struct candidates){0};
}

void candidates_sort(struct candidates *c)
{
    for (uint32_t at = c->count < 2 ? 0 : (c->count - 2) / 4 + 1; at-- > 0;)
        candidates_sink(c, at, c->keys[at]);
}
