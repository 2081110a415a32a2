#include "shim/store.h"

#include "shim/say.h"

#include <sys/mman.h>

#include "shim/inside.h"

void *store_reserve(size_t bytes, const char *what)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        say(SAY_ERROR, "cannot reserve %zu bytes of address space for %s", bytes, what);
        return NULL;
    }
    return base;
}

void store_clear(void *array, size_t bytes)
{
    if (array != NULL && bytes > 0) {
        madvise(array, bytes, MADV_DONTNEED);
    }
}

void store_return(void *array, size_t bytes)
{
    if (array != NULL) {
        munmap(array, bytes);
    }
}

bool bump_open(struct bump *bump, size_t capacity, const char *what)
{
    bump->base = store_reserve(capacity, what);
    bump->capacity = capacity;
    bump->used = bump->high = 0;
    return bump->base != NULL;
}

void *bump_take(struct bump *bump, size_t bytes)
{
    size_t rounded = (bytes + 15) & ~(size_t)15;
    if (rounded < bytes || rounded > bump->capacity - bump->used) {
        return NULL;
    }
    void *taken = bump->base + bump->used;
    bump->used += rounded;
    if (bump->used > bump->high) {
        bump->high = bump->used;
    }
    return taken;
}

void bump_reset(struct bump *bump)
{
    bump->used = 0;
}
