#include "tests/device/driver.h"
#include "tests/device/user_object.h"
#include "tests/device/graph.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

struct user_object {
    enum handle_kind magic;
    void *data;
    CUhostFn destroy;
    uint64_t references;
    struct user_object *next_due;
};

static struct user_object *due; /* under graph_lock */
static _Atomic bool is_any_due;
static _Atomic(struct user_object *) spent; /* kept, so that a handle used after its end is refused */

/* Objects are never returned, so that a stale handle is refused. */
static CUresult find(CUuserObject handle, struct user_object **out)
{
    struct user_object *object = (struct user_object *)handle;
    if (object == NULL || ((uintptr_t)object & 7) != 0 || object->magic != HANDLE_USER_OBJECT)
        return CUDA_ERROR_INVALID_VALUE;
    *out = object;
    return CUDA_SUCCESS;
}

static void let_go(struct user_object *object, uint64_t count)
{
    object->references -= count < object->references ? count : object->references;
    if (object->references > 0 || object->magic == HANDLE_DEAD)
        return;
    object->magic = HANDLE_DEAD;
    object->next_due = due;
    due = object;
    is_any_due = true;
}

void objects_run_destructors(void)
{
    if (!is_any_due)
        return;
    graph_lock();
    struct user_object *object = due;
    due = NULL;
    is_any_due = false;
    graph_unlock_plain();
    for (struct user_object *next; object != NULL; object = next) {
        next = object->next_due;
        object->destroy(object->data);
        object->next_due = atomic_exchange(&spent, object);
    }
}

static void put(struct object_list *list, struct user_object *object, unsigned count)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->references[i].object != object)
            continue;
        list->references[i].count += count;
        return;
    }
    struct object_reference *more = realloc(list->references, (list->count + 1) * sizeof *more);
    if (more == NULL)
        abort();
    more[list->count++] = (struct object_reference){object, count};
    list->references = more;
}

void objects_copy(struct object_list *to, const struct object_list *from)
{
    for (size_t i = 0; i < from->count; i++) {
        put(to, from->references[i].object, from->references[i].count);
        from->references[i].object->references += from->references[i].count;
    }
}

void objects_release(struct object_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        let_go(list->references[i].object, list->references[i].count);
    free(list->references);
    *list = (struct object_list){0};
}

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned int references,
                            unsigned int flags)
{
    if (out == NULL || destroy == NULL || references == 0 || references > INT_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct user_object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object =
        (struct user_object){.magic = HANDLE_USER_OBJECT, .data = data, .destroy = destroy, .references = references};
    *out = (CUuserObject)object;
    return CUDA_SUCCESS;
}

static CUresult change(CUuserObject handle, unsigned count, bool is_release)
{
    struct user_object *object;
    if (count == 0 || count > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = find(handle, &object);
    if (result == CUDA_SUCCESS && is_release)
        let_go(object, count);
    else if (result == CUDA_SUCCESS)
        object->references += count;
    graph_unlock();
    return result;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    return change(object, count, false);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    return change(object, count, true);
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count, unsigned int flags)
{
    struct user_object *object;
    struct graph *graph;
    if (count == 0 || count > INT_MAX || flags > CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(graph_handle, &graph);
    if (result == CUDA_SUCCESS)
        result = find(handle, &object);
    if (result == CUDA_SUCCESS) {
        put(&graph->objects, object, count);
        object->references += flags == CU_GRAPH_USER_OBJECT_MOVE ? 0 : count;
    }
    graph_unlock();
    return result;
}

/* CUDA_ERROR_INVALID_VALUE unless the graph owns as many. */
static CUresult release_from(struct object_list *list, struct user_object *object, unsigned count)
{
    for (size_t i = 0; i < list->count; i++) {
        struct object_reference *reference = &list->references[i];
        if (reference->object != object || reference->count < count)
            continue;
        reference->count -= count;
        if (reference->count == 0)
            *reference = list->references[--list->count];
        let_go(object, count);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count)
{
    struct user_object *object;
    struct graph *graph;
    if (count == 0 || count > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(graph_handle, &graph);
    if (result == CUDA_SUCCESS)
        result = find(handle, &object);
    if (result == CUDA_SUCCESS)
        result = release_from(&graph->objects, object, count);
    graph_unlock();
    return result;
}
