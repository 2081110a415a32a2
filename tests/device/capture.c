#include "tests/device/driver.h"
#include "tests/device/capture_state.h"
#include "tests/device/context.h"
#include "tests/device/graph_memory.h"
#include "tests/device/graph_node.h"
#include "tests/device/settings.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct capture *captures;
    uint64_t next_id;
} state;

static THREAD_LOCAL CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static _Atomic uint32_t strict_captures; /* not relaxed: a quick look for calls that care */

struct branch *capture_branch(struct capture *capture, const struct stream *stream)
{
    for (size_t i = 0; i < capture->branch_count; i++)
        if (capture->branches[i].stream == stream)
            return &capture->branches[i];
    return NULL;
}

static struct branch *add_branch(struct capture *capture, struct stream *stream)
{
    size_t bytes = (capture->branch_count + 1) * sizeof *capture->branches;
    struct branch *more = realloc(capture->branches, bytes);
    if (more == NULL)
        abort();
    capture->branches = more;
    more[capture->branch_count] = (struct branch){.stream = stream};
    stream->capture = capture;
    if (stream->is_blocking)
        stream->context->capturing_streams++;
    return &more[capture->branch_count++];
}

void capture_add_to_tail(struct branch *branch, struct node *node)
{
    for (size_t i = 0; i < branch->count; i++)
        if (branch->tail[i] == node)
            return;
    struct node **more = realloc(branch->tail, (branch->count + 1) * sizeof(struct node *));
    if (more == NULL)
        abort();
    more[branch->count++] = node;
    branch->tail = more;
}

static struct capture *capture_by_id(uint64_t id)
{
    struct capture *capture = state.captures;
    while (capture != NULL && capture->id != id)
        capture = capture->next;
    return capture;
}

static bool type_of(const struct work *work, CUgraphNodeType *type)
{
    switch (work->kind) {
    case WORK_GRID:
        *type = CU_GRAPH_NODE_TYPE_KERNEL;
        return true;
    case WORK_COPY:
        *type = CU_GRAPH_NODE_TYPE_MEMCPY;
        return true;
    case WORK_FILL:
        *type = CU_GRAPH_NODE_TYPE_MEMSET;
        return true;
    case WORK_HOST:
        *type = CU_GRAPH_NODE_TYPE_HOST;
        return true;
    case WORK_VALUE_WRITE:
    case WORK_VALUE_WAIT:
        *type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
        return true;
    default:
        return false;
    }
}

static void keep_box(struct node *node)
{
    const struct copy_work *copy = &node->work->copy;
    node->box = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = copy->source,
                                .srcPitch = copy->source_pitch,
                                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .dstDevice = copy->destination,
                                .dstPitch = copy->destination_pitch,
                                .WidthInBytes = copy->width,
                                .Height = copy->height,
                                .Depth = copy->depth};
}

static CUresult put_node(struct capture *capture, struct branch *branch, CUgraphNodeType type, struct work *work,
                         struct node **out)
{
    CUresult result = graph_check_edges(capture->graph, type, branch->tail, NULL, branch->count);
    if (result != CUDA_SUCCESS)
        return result;
    struct node *node = graph_add(capture->graph, type, branch->tail, NULL, branch->count);
    node->work = work;
    if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
        keep_box(node);
    branch->count = 0;
    capture_add_to_tail(branch, node);
    *out = node;
    return CUDA_SUCCESS;
}

CUresult capture_take(struct stream *stream, struct work *work)
{
    CUgraphNodeType type;
    CUresult result;
    struct node *node;
    graph_lock();
    struct capture *capture = stream->capture;
    if (capture == NULL || capture->is_invalid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!type_of(work, &type)) {
        capture->is_invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else {
        result = put_node(capture, capture_branch(capture, stream), type, work, &node);
    }
    graph_unlock();
    if (result != CUDA_SUCCESS)
        work_discard(work);
    return result;
}

/* Under graph_lock: a node that holds no work; the stream's capture is good. */
static CUresult put_empty(struct stream *stream, CUgraphNodeType type, struct node **out)
{
    struct capture *capture = stream->capture;
    if (capture == NULL || capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return put_node(capture, capture_branch(capture, stream), type, NULL, out);
}

CUresult capture_allocate(struct stream *stream, const struct pool *pool, size_t bytes, CUdeviceptr *out)
{
    struct graph_memory *memory;
    struct node *node;
    CUmemAccessDesc access[DEVICES_MAX];
    size_t count = 0;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < settings()->device_count; i++)
        if (pool->access[i] != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            access[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)i},
                                                .flags = pool->access[i]};
    CUresult result = graph_memory_create(&pool->properties, access, count, bytes, &memory);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = put_empty(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node);
    if (result == CUDA_SUCCESS) {
        node_set_memory(node, memory);
        *out = memory->base;
    }
    graph_unlock();
    if (result != CUDA_SUCCESS)
        graph_memory_let_go(memory);
    return result;
}

CUresult capture_free(struct stream *stream, struct graph_memory *memory)
{
    struct node *node;
    graph_lock();
    struct capture *capture = stream->capture;
    CUresult result = memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && capture != NULL)
        result = node_claim_free(capture->graph, memory);
    if (result == CUDA_SUCCESS)
        result = put_empty(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &node);
    if (result == CUDA_SUCCESS) {
        graph_memory_hold(memory);
        node_set_memory(node, memory);
    }
    graph_unlock();
    return result;
}

CUresult capture_graph(struct stream *stream, const struct graph *graph)
{
    struct node *node;
    graph_lock();
    CUresult result = graph_has_memory(graph) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = put_empty(stream, CU_GRAPH_NODE_TYPE_GRAPH, &node);
    if (result == CUDA_SUCCESS) {
        node->child = graph_copy(graph);
        node->child->is_moved = true;
    }
    graph_unlock();
    return result;
}

CUresult capture_record(struct stream *stream, struct event *event)
{
    CUresult result = CUDA_SUCCESS;
    graph_lock();
    struct capture *capture = stream->capture;
    if (capture == NULL || capture->is_invalid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        struct branch *branch = capture_branch(capture, stream);
        free(event->nodes);
        event->nodes = calloc(branch->count + 1, sizeof(struct node *));
        if (event->nodes == NULL)
            abort();
        if (branch->count > 0)
            memcpy(event->nodes, branch->tail, branch->count * sizeof(struct node *));
        event->node_count = branch->count;
        event->capture_id = capture->id;
    }
    graph_unlock();
    return result;
}

/* Under graph_lock. */
static CUresult join(struct stream *stream, struct event *event)
{
    struct capture *into = event->capture_id != 0 ? capture_by_id(event->capture_id) : NULL;
    struct capture *capture = stream->capture;
    if (into == NULL) {
        /* A captured stream waits for work outside (or for a capture that is over). */
        if (capture != NULL)
            capture->is_invalid = true;
        return event->capture_id != 0 ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture != NULL && capture != into) {
        capture->is_invalid = into->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (into->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    struct branch *branch = capture != NULL ? capture_branch(into, stream) : add_branch(into, stream);
    for (size_t i = 0; i < event->node_count; i++)
        capture_add_to_tail(branch, event->nodes[i]);
    return CUDA_SUCCESS;
}

CUresult capture_wait(struct stream *stream, struct event *event)
{
    graph_lock();
    CUresult result = join(stream, event);
    graph_unlock();
    return result;
}

CUresult capture_refuse(struct stream *stream)
{
    graph_lock();
    if (stream->capture != NULL)
        stream->capture->is_invalid = true;
    graph_unlock();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_refuse_legacy(struct context *context)
{
    graph_lock();
    for (struct capture *capture = state.captures; capture != NULL; capture = capture->next)
        for (size_t i = 0; i < capture->branch_count; i++)
            if (capture->branches[i].stream->context == context && capture->branches[i].stream->is_blocking)
                capture->is_invalid = true;
    graph_unlock();
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult capture_refuse_context(const struct context *context)
{
    graph_lock();
    for (struct capture *capture = state.captures; capture != NULL; capture = capture->next)
        for (size_t i = 0; i < capture->branch_count; i++)
            if (capture->branches[i].stream->context == context)
                capture->is_invalid = true;
    graph_unlock();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static bool is_forbidden_by(const struct capture *capture)
{
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (pthread_equal(capture->thread, pthread_self()))
        return true;
    return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_check_unsafe(void)
{
    if (strict_captures == 0)
        return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    graph_lock();
    for (struct capture *capture = state.captures; capture != NULL; capture = capture->next) {
        if (!is_forbidden_by(capture))
            continue;
        capture->is_invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    graph_unlock();
    return result;
}

static CUresult begin(struct stream *stream, struct graph *into, CUstreamCaptureMode mode,
                      struct node *const *dependencies, size_t count)
{
    if (stream->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->id = ++state.next_id;
    capture->graph = into != NULL ? into : graph_create();
    capture->is_graph_owned = into == NULL;
    capture->mode = mode;
    capture->thread = pthread_self();
    struct branch *branch = add_branch(capture, stream);
    for (size_t i = 0; i < count; i++)
        capture_add_to_tail(branch, dependencies[i]);
    capture->next = state.captures;
    state.captures = capture;
    strict_captures += mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = begin(stream, NULL, mode, NULL, 0);
    graph_unlock();
    return result;
}

TWIN(cuStreamBeginCapture_v2, _ptsz, (CUstream handle, CUstreamCaptureMode mode), (per_thread(handle), mode))

CUresult cuStreamBeginCapture(CUstream handle)
{
    return cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TWIN(cuStreamBeginCapture, _ptsz, (CUstream handle), (per_thread(handle)))

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    struct context *context;
    struct stream *stream;
    struct graph *graph;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    (void)edges;
    if (count > 0 && dependencies == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    result = graph_find(graph_handle, &graph);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct node *node;
        result = node_find(dependencies[i], &node);
        if (result == CUDA_SUCCESS && node->graph != graph)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = begin(stream, graph, mode, (struct node *const *)dependencies, count);
    graph_unlock();
    return result;
}

TWIN(cuStreamBeginCaptureToGraph, _ptsz,
     (CUstream handle, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
      CUstreamCaptureMode mode),
     (per_thread(handle), graph, dependencies, edges, count, mode))

/* Every node of the other branches must be behind the origin's tail. */
static bool is_joined(const struct capture *capture)
{
    const struct branch *origin = &capture->branches[0];
    for (size_t i = 1; i < capture->branch_count; i++) {
        for (size_t k = 0; k < capture->branches[i].count; k++) {
            bool is_behind = false;
            for (size_t t = 0; t < origin->count && !is_behind; t++)
                is_behind = node_is_behind(origin->tail[t], capture->branches[i].tail[k]);
            if (!is_behind)
                return false;
        }
    }
    return true;
}

static void finish(struct capture *capture)
{
    struct capture **link = &state.captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    for (size_t i = 0; i < capture->branch_count; i++) {
        struct stream *stream = capture->branches[i].stream;
        stream->capture = NULL;
        if (stream->is_blocking)
            stream->context->capturing_streams--;
        free(capture->branches[i].tail);
    }
    strict_captures -= capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    free(capture->branches);
    free(capture);
}

/* Under graph_lock. */
static CUresult end(struct stream *stream, CUgraph *out)
{
    struct capture *capture = stream->capture;
    if (capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->branches[0].stream != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = CUDA_SUCCESS;
    if (capture->is_invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *out = result == CUDA_SUCCESS ? (CUgraph)capture->graph : NULL;
    if (result != CUDA_SUCCESS && capture->is_graph_owned)
        graph_destroy(capture->graph);
    finish(capture);
    return result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    result = end(stream, out);
    graph_unlock();
    return result;
}

TWIN(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph *out), (per_thread(handle), out))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode former = thread_mode;
    thread_mode = *mode;
    *mode = former;
    return CUDA_SUCCESS;
}
