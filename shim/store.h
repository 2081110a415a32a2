/* Arrays that live outside malloc: address space is taken once, pages when they are touched.
 *
 * An array never moves, so pointers into it stay valid. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Address space for `bytes`, zero-filled on first touch. NULL: the system refused (said once). */
void *store_reserve(size_t bytes, const char *what);

/* Makes [array, array + bytes) zeros again and gives its pages back. `array` comes from store_reserve. */
void store_clear(void *array, size_t bytes);

/* Gives the address space back. */
void store_return(void *array, size_t bytes);

/* A bump allocator over one reserved array: everything in it dies together at bump_reset. */
struct bump {
    unsigned char *base;
    size_t capacity, used, high;
};

bool bump_open(struct bump *bump, size_t capacity, const char *what);
void *bump_take(struct bump *bump, size_t bytes); /* 16-byte aligned, contents undefined; NULL when full */
void bump_reset(struct bump *bump);
