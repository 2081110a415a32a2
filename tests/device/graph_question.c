/* What a graph's nodes do, given back in the driver's structs. */
#include "tests/device/driver.h"
#include "tests/device/graph.h"
#include "tests/device/module.h"
#include <stdlib.h>
#include <string.h>

/* Under graph_lock. */
static CUresult find(CUgraphNode handle, CUgraphNodeType type, const void *out, struct node **node)
{
    CUresult result = node_find(handle, node);
    if (result == CUDA_SUCCESS && ((*node)->type != type || out == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

/* kernelParams point into the node's own arguments, and live until these change. */
static void describe_kernel(struct node *node, CUDA_KERNEL_NODE_PARAMS *out)
{
    const struct grid_work *grid = &node->work->grid;
    const struct program_entry *entry = grid->function->entry;
    free(node->pointers);
    node->pointers = calloc(entry->param_count + 1, sizeof(void *));
    if (node->pointers == NULL)
        abort();
    for (uint32_t i = 0; i < entry->param_count; i++)
        node->pointers[i] = (unsigned char *)grid->grid.params + entry->params[i].offset;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)grid->function,
                                     .gridDimX = grid->grid.grid[0],
                                     .gridDimY = grid->grid.grid[1],
                                     .gridDimZ = grid->grid.grid[2],
                                     .blockDimX = grid->grid.block[0],
                                     .blockDimY = grid->grid.block[1],
                                     .blockDimZ = grid->grid.block[2],
                                     .sharedMemBytes = grid->grid.dynamic_shared_bytes,
                                     .kernelParams = node->pointers};
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_KERNEL, out, &node);
    if (result == CUDA_SUCCESS)
        describe_kernel(node, out);
    graph_unlock();
    return result;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
    CUDA_KERNEL_NODE_PARAMS all;
    CUresult result = cuGraphKernelNodeGetParams_v2(handle, &all);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(out, &all, sizeof *out);
    return result;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_MEMCPY, out, &node);
    if (result == CUDA_SUCCESS)
        *out = node->box;
    graph_unlock();
    return result;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_MEMSET, out, &node);
    if (result == CUDA_SUCCESS) {
        const struct fill_work *fill = &node->work->fill;
        *out = (CUDA_MEMSET_NODE_PARAMS){fill->destination,   fill->pitch, fill->value,
                                         fill->element_bytes, fill->width, fill->height};
    }
    graph_unlock();
    return result;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_HOST, out, &node);
    if (result == CUDA_SUCCESS)
        *out = (CUDA_HOST_NODE_PARAMS){node->work->host.function, node->work->host.data};
    graph_unlock();
    return result;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_GRAPH, out, &node);
    if (result == CUDA_SUCCESS)
        *out = (CUgraph)node->child;
    graph_unlock();
    return result;
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, type, out, &node);
    if (result == CUDA_SUCCESS)
        *out = node->event;
    graph_unlock();
    return result;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out)
{
    return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out)
{
    return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return cuGraphNodeSetParams(node, &params);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return cuGraphNodeSetParams(node, &params);
}

/* Kernel attributes of a node: none of them changes what runs here. */
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_KERNEL, value, &node);
    if (result == CUDA_SUCCESS && id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        node->work->grid.grid.is_cooperative = value->cooperative != 0;
    graph_unlock();
    return result;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_KERNEL, out, &node);
    if (result == CUDA_SUCCESS) {
        memset(out, 0, sizeof *out);
        if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            out->cooperative = node->work->grid.grid.is_cooperative;
    }
    graph_unlock();
    return result;
}
