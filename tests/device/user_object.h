/* Objects of the program that graphs keep alive. The destructor runs when the last reference goes, but never under
 * graph_lock: graph_unlock calls what has become due. */
#pragma once
#include "tests/device/driver.h"

struct user_object;

/* References that a graph owns, per object. */
struct object_list {
    struct object_reference {
        struct user_object *object;
        unsigned count;
    } * references;
    size_t count;
};

/* All under graph_lock. */
void objects_copy(struct object_list *to, const struct object_list *from);
void objects_release(struct object_list *list);

/* After graph_lock has been let go: calls the destructors that are due. */
void objects_run_destructors(void);
