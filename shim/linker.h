/* The C library's own dlsym and dlvsym, past every override, ours and other people's.
 *
 * They cannot be asked for by name (the question would come to our own exported dlvsym), so they are read from
 * the C library's symbol table. */
#pragma once
#include <stdbool.h>

struct linker_functions {
    void *(*dlsym)(void *handle, const char *name);
    void *(*dlvsym)(void *handle, const char *name, const char *version);
};

/* Order of strcmp. Look-ups come before an interposed string function (a sanitizer's) can be called. */
static inline int linker_compare(const char *one, const char *other)
{
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return (unsigned char)*one - (unsigned char)*other;
}

/* RTLD_NEXT from the object that holds `caller`: is `name` defined by an object that comes after it and before
 * the one that holds `ours`? */
bool linker_has_between(const void *caller, const void *ours, const char *name);

/* Never NULL; any thread, also before constructors have run. Ends the process with a reason if the C library
 * cannot be read: nothing would work without these two. */
const struct linker_functions *linker_functions(void);
