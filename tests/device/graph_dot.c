/* cuGraphDebugDotPrint: a graph as a DOT file. */
#include "tests/device/driver.h"
#include "tests/device/graph.h"
#include "tests/device/graph_memory.h"
#include "tests/device/module.h"
#include <stdio.h>

static const char *type_name(CUgraphNodeType type)
{
    static const char *const names[] = {
        "KERNEL",       "MEMCPY",           "MEMSET",         "HOST",      "GRAPH",    "EMPTY",        "WAIT_EVENT",
        "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "UNKNOWN";
}

static bool is_wanted(unsigned flags, unsigned flag)
{
    return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
}

static void print_copy(FILE *file, const struct node *node, unsigned flags)
{
    const struct copy_work *copy = &node->work->copy;
    fprintf(file, "\\n%s to %s", memory_is_device(copy->source) ? "device" : "host",
            memory_is_device(copy->destination) ? "device" : "host");
    if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
        fprintf(file, "\\n%zu x %zu x %zu bytes, 0x%llx to 0x%llx", copy->width, copy->height, copy->depth,
                (unsigned long long)copy->source, (unsigned long long)copy->destination);
}

static void print_kernel(FILE *file, const struct node *node, unsigned flags)
{
    const struct grid_work *grid = &node->work->grid;
    fprintf(file, "\\n%s", grid->function->entry->name);
    if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        fprintf(file, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", grid->grid.grid[0], grid->grid.grid[1], grid->grid.grid[2],
                grid->grid.block[0], grid->grid.block[1], grid->grid.block[2], grid->grid.dynamic_shared_bytes);
    if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(file, "\\nfunction %p", (void *)grid->function);
}

static void print_content(FILE *file, const struct node *node, unsigned flags)
{
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        print_kernel(file, node, flags);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        print_copy(file, node, flags);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
            fprintf(file, "\\n0x%llx, %zu x %zu elements of %u, value %u",
                    (unsigned long long)node->work->fill.destination, node->work->fill.width, node->work->fill.height,
                    node->work->fill.element_bytes, node->work->fill.value);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
            fprintf(file, "\\nfunction %p(%p)", (void *)(uintptr_t)node->work->host.function, node->work->host.data);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
            fprintf(file, "\\nevent %p", (void *)node->event);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        if (is_wanted(flags,
                      CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS | CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
            fprintf(file, "\\n0x%llx, %zu bytes", (unsigned long long)node->memory->base, node->memory->asked_bytes);
        break;
    default:
        break;
    }
}

/* Node names hold the path of the graphs that they are in, so that a child's do not meet its parent's. */
static void print_graph(FILE *file, const struct graph *graph, const char *path, unsigned flags)
{
    fprintf(file, "subgraph \"cluster_%s\" {\nlabel=\"graph_%s\"\n", path, path);
    for (size_t i = 0; i < graph->count; i++) {
        struct node *node = graph->nodes[i];
        char inner[256];
        node->mark = i;
        fprintf(file, "\"graph_%s_node_%zu\" [shape=\"%s\" label=\"%zu\\n%s", path, i,
                node->type == CU_GRAPH_NODE_TYPE_KERNEL ? "octagon" : "rectangle", i, type_name(node->type));
        print_content(file, node, flags);
        if (is_wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
            fprintf(file, "\\nnode %p", (void *)node);
        fprintf(file, "\"]\n");
        if (node->child != NULL && snprintf(inner, sizeof inner, "%s_%zu", path, i) < (int)sizeof inner)
            print_graph(file, node->child, inner, flags);
    }
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++)
            fprintf(file, "\"graph_%s_node_%zu\" -> \"graph_%s_node_%zu\"\n", path,
                    graph->nodes[i]->dependencies[k]->mark, path, i);
    fprintf(file, "}\n");
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags)
{
    struct graph *graph;
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    FILE *file = result == CUDA_SUCCESS ? fopen(path, "we") : NULL;
    if (file != NULL) {
        fprintf(file, "digraph dot {\n");
        print_graph(file, graph, "0", flags);
        fprintf(file, "}\n");
    }
    graph_unlock();
    if (result != CUDA_SUCCESS)
        return result;
    bool is_written = file != NULL && ferror(file) == 0;
    if (file != NULL && fclose(file) != 0)
        is_written = false;
    return is_written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
