#include "tests/device/ptx_heap.h"

#include <stdatomic.h>
#include <stdlib.h>

#define HEAP_BYTES ((uint64_t)8 << 20)
#define MARK       0x70747868656170u

struct head {
    uint64_t mark, bytes;
};

static atomic_uint_fast64_t taken;

void *ptx_heap_take(uint64_t bytes)
{
    if (bytes > HEAP_BYTES)
        return NULL;
    uint64_t total = bytes + sizeof(struct head);
    if (atomic_fetch_add(&taken, total) + total > HEAP_BYTES) {
        atomic_fetch_sub(&taken, total);
        return NULL;
    }
    struct head *head = malloc(total);
    if (!head) {
        atomic_fetch_sub(&taken, total);
        return NULL;
    }
    *head = (struct head){MARK, total};
    return head + 1;
}

void ptx_heap_give(void *memory)
{
    struct head *head = (struct head *)memory - 1;
    if (!memory || head->mark != MARK)
        return;
    head->mark = 0;
    atomic_fetch_sub(&taken, head->bytes);
    free(head);
}
