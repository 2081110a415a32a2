/* What a graph's nodes do, given back in the driver's structs. */
#include "tests/device/driver.h"
#include "tests/device/graph.h"
#include "tests/device/graph_memory.h"
#include "tests/device/module.h"
#include "tests/device/value.h"
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

/* paramArray lives until the node is asked again, changes or goes. */
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, out, &node);
    if (result == CUDA_SUCCESS) {
        unsigned count = 0;
        for (const struct work *work = node->work; work != NULL; work = work->next)
            count++;
        free(node->operations);
        node->operations = calloc(count, sizeof *node->operations);
        if (node->operations == NULL)
            abort();
        *out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = count, .paramArray = node->operations};
        for (const struct work *work = node->work; work != NULL; work = work->next)
            *node->operations++ = value_describe(work);
        node->operations = out->paramArray;
    }
    graph_unlock();
    return result;
}

/* accessDescs stays empty: the peers are remembered, not the array. */
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, out, &node);
    if (result == CUDA_SUCCESS)
        *out = (CUDA_MEM_ALLOC_NODE_PARAMS){
            .poolProps = node->memory->properties, .bytesize = node->memory->asked_bytes, .dptr = node->memory->base};
    graph_unlock();
    return result;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, out, &node);
    if (result == CUDA_SUCCESS)
        *out = node->memory->base;
    graph_unlock();
    return result;
}

/* ---- attributes of kernel nodes: kept and answered; only `cooperative` changes what runs here ---- */

static bool is_node_attribute(CUkernelNodeAttrID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    default:
        return false;
    }
}

static CUresult set_attribute(struct node *node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    if (!is_node_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
        value->clusterDim.x * value->clusterDim.y * value->clusterDim.z > 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (node->attributes == NULL)
        node->attributes = calloc(NODE_ATTRIBUTES, sizeof *node->attributes);
    if (node->attributes == NULL)
        abort();
    node->attributes[id] = *value;
    node->attributes_set |= 1u << id;
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        node->work->grid.grid.is_cooperative = value->cooperative != 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_KERNEL, value, &node);
    if (result == CUDA_SUCCESS)
        result = set_attribute(node, id, value);
    graph_unlock();
    return result;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out)
{
    struct node *node;
    graph_lock();
    CUresult result = find(handle, CU_GRAPH_NODE_TYPE_KERNEL, out, &node);
    if (result == CUDA_SUCCESS && !is_node_attribute(id))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        memset(out, 0, sizeof *out);
        if ((node->attributes_set & 1u << id) != 0)
            *out = node->attributes[id];
        if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            out->cooperative = node->work->grid.grid.is_cooperative;
    }
    graph_unlock();
    return result;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to_handle, CUgraphNode from_handle)
{
    struct node *to, *from;
    graph_lock();
    CUresult result = find(to_handle, CU_GRAPH_NODE_TYPE_KERNEL, to_handle, &to);
    if (result == CUDA_SUCCESS)
        result = find(from_handle, CU_GRAPH_NODE_TYPE_KERNEL, from_handle, &from);
    for (unsigned id = 0; id < NODE_ATTRIBUTES && result == CUDA_SUCCESS; id++)
        if ((from->attributes_set & 1u << id) != 0)
            result = set_attribute(to, (CUkernelNodeAttrID)id, &from->attributes[id]);
    graph_unlock();
    return result;
}
