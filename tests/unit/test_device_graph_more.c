/* links: tests/device/whole.c */
/* Graphs: memory nodes, memory operations, edges with data, updates, user objects, descriptions. */
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include <stdio.h>
#include <unistd.h>

static CUmodule module;
static CUdeviceptr words; /* 16 of them */
static CUstream stream;

static int begin(void **state)
{
    if (start_device(state) != 0 || cuModuleLoadData(&module, test_ptx) != CUDA_SUCCESS ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return -1;
    return cuMemAlloc_v2(&words, 64) == CUDA_SUCCESS ? 0 : -1;
}

static int clear(void **state)
{
    (void)state;
    return cuMemsetD32_v2(words, 0, 16) == CUDA_SUCCESS && cuDeviceGraphMemTrim(0) == CUDA_SUCCESS ? 0 : -1;
}

static uint32_t word_at(CUdeviceptr address)
{
    uint32_t value = 0;
    succeeds(cuMemcpyDtoH_v2(&value, address, 4));
    return value;
}

static CUfunction function(const char *name)
{
    CUfunction found;
    succeeds(cuModuleGetFunction(&found, module, name));
    return found;
}

static CUgraph new_graph(void)
{
    CUgraph graph;
    succeeds(cuGraphCreate(&graph, 0));
    return graph;
}

/* *address = value, after `dependency` (NULL: none). */
static CUgraphNode add_store(CUgraph graph, CUgraphNode dependency, CUdeviceptr address, uint32_t value)
{
    void *params[] = {&address, &value};
    CUDA_KERNEL_NODE_PARAMS node = {.func = function("store"),
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = params};
    CUgraphNode added;
    succeeds(cuGraphAddKernelNode_v2(&added, graph, &dependency, dependency != NULL, &node));
    return added;
}

static CUgraphNode add_copy(CUgraph graph, CUgraphNode dependency, CUdeviceptr to, CUdeviceptr from)
{
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = to,
                         .WidthInBytes = 4,
                         .Height = 1,
                         .Depth = 1};
    CUgraphNode added;
    succeeds(cuGraphAddMemcpyNode(&added, graph, &dependency, dependency != NULL, &box, NULL));
    return added;
}

static CUgraphNode add_memory(CUgraph graph, CUgraphNode dependency, size_t bytes, CUdeviceptr *address)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
                                         .bytesize = bytes};
    CUgraphNode added;
    succeeds(cuGraphAddMemAllocNode(&added, graph, &dependency, dependency != NULL, &params));
    *address = params.dptr;
    return added;
}

static CUgraphExec instantiate(CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

static void run(CUgraphExec exec)
{
    succeeds(cuGraphLaunch(exec, stream));
    succeeds(cuStreamSynchronize(stream));
}

static cuuint64_t graph_bytes(CUgraphMem_attribute attribute)
{
    cuuint64_t bytes = 0;
    succeeds(cuDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

/* ---- memory nodes ---- */

static void memory_lives_between_its_nodes(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUdeviceptr memory;
    size_t before = free_bytes();
    CUgraphNode alloc = add_memory(graph, NULL, 3 * FRAME - 8, &memory), released;
    assert_int_equal(free_bytes(), before);
    CUgraphNode last = add_copy(graph, add_store(graph, alloc, memory, 77), words, memory);
    succeeds(cuGraphAddMemFreeNode(&released, graph, &last, 1, memory));
    CUgraphExec exec = instantiate(graph, 0);
    for (int i = 0; i < 3; i++) {
        succeeds(cuMemsetD32_v2(words, 0, 16));
        run(exec);
        assert_int_equal(word_at(words), 77);
        assert_int_equal(free_bytes(), before - 3 * FRAME);
        assert_int_equal(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
        assert_int_equal(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 3 * FRAME);
    }
    CUDA_MEM_ALLOC_NODE_PARAMS told;
    CUdeviceptr told_free = 0;
    succeeds(cuGraphMemAllocNodeGetParams(alloc, &told));
    assert_int_equal(told.dptr, memory);
    assert_int_equal(told.bytesize, 3 * FRAME - 8);
    succeeds(cuGraphMemFreeNodeGetParams(released, &told_free));
    assert_int_equal(told_free, memory);
    fails(cuGraphMemFreeNodeGetParams(alloc, &told_free), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuDeviceGraphMemTrim(0));
    assert_int_equal(free_bytes(), before);
    run(exec);
    assert_int_equal(word_at(words), 77);
    /* Freed inside: not to be freed from outside. */
    fails(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
    assert_int_equal(free_bytes(), before);
    fails(cuDeviceGraphMemTrim(1), CUDA_ERROR_INVALID_DEVICE);
}

static void memory_outlives_the_graph_until_freed(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUdeviceptr memory;
    size_t before = free_bytes();
    CUgraphNode alloc = add_memory(graph, NULL, FRAME, &memory);
    add_store(graph, alloc, memory, 5);
    CUgraphExec exec = instantiate(graph, 0);
    fails(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    run(exec);
    assert_int_equal(word_at(memory), 5);
    assert_int_equal(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), FRAME);
    fails(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFreeAsync(memory, stream));
    fails(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    run(exec);
    succeeds(cuMemFree_v2(memory));
    run(exec);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
    assert_int_equal(word_at(memory), 5);
    assert_int_equal(free_bytes(), before - FRAME);
    succeeds(cuMemFree_v2(memory));
    assert_int_equal(free_bytes(), before);
    fails(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
}

static void what_is_left_over_is_freed_on_demand(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUdeviceptr memory;
    CUgraphNode alloc = add_memory(graph, NULL, FRAME, &memory);
    add_store(graph, alloc, memory, 6);
    CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 4; i++)
        run(exec);
    assert_int_equal(word_at(memory), 6);
    succeeds(cuMemFree_v2(memory));
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
}

static void another_graph_may_free(void **unused)
{
    (void)unused;
    CUgraph first = new_graph(), second = new_graph(), third = new_graph();
    CUdeviceptr memory;
    CUgraphNode node, alloc = add_memory(first, NULL, FRAME, &memory);
    add_store(first, alloc, memory, 8);
    CUgraphNode copy = add_copy(second, NULL, words, memory);
    succeeds(cuGraphAddMemFreeNode(&node, second, &copy, 1, memory));
    fails(cuGraphAddMemFreeNode(&node, second, &copy, 1, memory), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddMemFreeNode(&node, first, &alloc, 1, memory), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddMemFreeNode(&node, third, NULL, 0, words), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddMemFreeNode(&node, third, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CUgraphExec makes = instantiate(first, 0), frees = instantiate(second, 0);
    fails(cuGraphLaunch(frees, stream), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        succeeds(cuGraphLaunch(makes, stream));
        run(frees);
        assert_int_equal(word_at(words), 8);
    }
    succeeds(cuGraphExecDestroy(makes));
    succeeds(cuGraphExecDestroy(frees));
    succeeds(cuGraphDestroy(first));
    succeeds(cuGraphDestroy(second));
    succeeds(cuGraphDestroy(third));
}

static void graphs_with_memory_are_restricted(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph(), parent = new_graph(), copy;
    CUdeviceptr memory;
    CUgraphNode alloc = add_memory(graph, NULL, FRAME, &memory), node, freed;
    CUgraphNode store = add_store(graph, alloc, memory, 1);
    succeeds(cuGraphAddMemFreeNode(&freed, graph, &store, 1, memory));
    CUgraphExec exec, second;
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0));
    fails(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0));
    succeeds(cuGraphExecDestroy(exec));
    fails(cuGraphClone(&copy, graph), CUDA_ERROR_NOT_SUPPORTED);
    fails(cuGraphDestroyNode(store), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphRemoveDependencies(graph, &alloc, &store, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    succeeds(cuGraphAddNode(&node, parent, NULL, 0, &params));
    fails(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddNode(&node, parent, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    exec = instantiate(parent, 0);
    run(exec);
    run(exec);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(parent));
    CUDA_MEM_ALLOC_NODE_PARAMS bad = {.bytesize = 0};
    graph = new_graph();
    fails(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddMemAllocNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphDestroy(graph));
}

static void lack_of_memory_shows_at_the_launch(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUdeviceptr first, second;
    size_t before = free_bytes();
    add_memory(graph, add_memory(graph, NULL, FRAME, &first), DEVICE_BYTES, &second);
    CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    fails(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    succeeds(cuDeviceGraphMemTrim(0));
    assert_int_equal(free_bytes(), before);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
}

static void allocation_is_captured(void **unused)
{
    (void)unused;
    CUdeviceptr memory, plain;
    CUgraph graph;
    size_t before = free_bytes(), count = 0;
    succeeds(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    succeeds(cuMemAllocAsync(&memory, 2 * FRAME, stream));
    succeeds(cuMemsetD32Async(memory, 41, 8, stream));
    succeeds(cuMemcpyDtoDAsync_v2(words, memory, 4, stream));
    succeeds(cuMemFreeAsync(memory, stream));
    succeeds(cuStreamEndCapture(stream, &graph));
    succeeds(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    CUgraphExec exec = instantiate(graph, 0);
    run(exec);
    run(exec);
    assert_int_equal(word_at(words), 41);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
    assert_int_equal(free_bytes(), before);
    /* Memory from outside the graph cannot be freed by it. */
    succeeds(cuMemAllocAsync(&plain, FRAME, stream));
    succeeds(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    fails(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuStreamEndCapture(stream, &graph));
    succeeds(cuGraphDestroy(graph));
    succeeds(cuMemFreeAsync(plain, stream));
    succeeds(cuStreamSynchronize(stream));
}

/* ---- other nodes ---- */

static void memory_operations_are_nodes(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUstreamBatchMemOpParams operations[3];
    memset(operations, 0, sizeof operations);
    operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[0].writeValue.address = words;
    operations[0].writeValue.value = 11;
    operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[1].waitValue.address = words;
    operations[1].waitValue.value = 11;
    operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    operations[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[2].writeValue.address = words + 8;
    operations[2].writeValue.value64 = 0x100000002;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 3, .paramArray = operations}, told;
    CUgraphNode node;
    succeeds(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    succeeds(cuGraphBatchMemOpNodeGetParams(node, &told));
    assert_int_equal(told.count, 3);
    assert_int_equal(told.paramArray[2].writeValue.value64, 0x100000002);
    CUgraphExec exec = instantiate(graph, 0);
    run(exec);
    assert_int_equal(word_at(words), 11);
    assert_int_equal(word_at(words + 12), 1);
    operations[0].writeValue.value = operations[1].waitValue.value = 12;
    succeeds(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    run(exec);
    assert_int_equal(word_at(words), 12);
    params.count = 256;
    fails(cuGraphBatchMemOpNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
    params.count = 0;
    fails(cuGraphBatchMemOpNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
}

static void a_launch_is_captured_as_a_child(void **unused)
{
    (void)unused;
    CUgraph inner = new_graph(), outer;
    add_store(inner, NULL, words, 3);
    CUgraphExec exec = instantiate(inner, 0), both;
    succeeds(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    succeeds(cuGraphLaunch(exec, stream));
    succeeds(cuMemcpyDtoDAsync_v2(words + 4, words, 4, stream));
    succeeds(cuStreamEndCapture(stream, &outer));
    assert_int_equal(word_at(words), 0);
    both = instantiate(outer, 0);
    run(both);
    assert_int_equal(word_at(words + 4), 3);
    succeeds(cuGraphExecDestroy(both));
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(inner));
    succeeds(cuGraphDestroy(outer));
}

static void one_executable_runs_once_at_a_time(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUstream other;
    uint32_t *gate;
    succeeds(cuMemHostAlloc((void **)&gate, 64, 0));
    succeeds(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    add_copy(graph, NULL, words, words + 4);
    CUgraphExec exec = instantiate(graph, 0);
    gate[0] = 0;
    succeeds(cuStreamWaitValue32_v2(stream, (CUdeviceptr)gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    succeeds(cuGraphLaunch(exec, stream));
    succeeds(cuGraphLaunch(exec, other));
    usleep(20000);
    fails(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    succeeds(cuStreamSynchronize(other));
    succeeds(cuStreamSynchronize(stream));
    succeeds(cuStreamDestroy_v2(other));
    succeeds(cuMemFreeHost(gate));
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
}

static void nodes_that_are_not_done_are_refused(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    fails(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
    params.type = (CUgraphNodeType)99;
    fails(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    params.reserved0[1] = 1;
    fails(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphDestroy(graph));
}

/* ---- edges ---- */

static void edges_carry_data(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUgraphNode first = add_store(graph, NULL, words, 1), second = add_store(graph, NULL, words + 4, 2), empty;
    CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC},
                    told[2], wrong = {.to_port = 1};
    CUgraphNode from[2], to[2];
    size_t count = 2;
    succeeds(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    fails(cuGraphAddDependencies_v2(graph, &first, &empty, &edge, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddDependencies_v2(graph, &first, &second, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphAddDependencies_v2(graph, &first, &second, &edge, 1));
    fails(cuGraphAddDependencies_v2(graph, &first, &second, &edge, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphGetEdges(graph, from, to, &count), CUDA_ERROR_LOSSY_QUERY);
    fails(cuGraphNodeGetDependencies(second, from, &count), CUDA_ERROR_LOSSY_QUERY);
    count = 0;
    succeeds(cuGraphGetEdges(graph, NULL, NULL, &count));
    assert_int_equal(count, 1);
    count = 2;
    succeeds(cuGraphGetEdges_v2(graph, from, to, told, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(from[0], first);
    assert_ptr_equal(to[0], second);
    assert_null(from[1]);
    assert_memory_equal(&told[0], &edge, sizeof edge);
    fails(cuGraphGetEdges_v2(graph, NULL, NULL, told, &count), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphRemoveDependencies(graph, &first, &second, 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphRemoveDependencies_v2(graph, &first, &second, &edge, 1));
    succeeds(cuGraphDestroy(graph));
}

/* ---- updates ---- */

static void check_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult result, CUgraphNode node,
                         CUgraphNode from)
{
    CUgraphExecUpdateResultInfo info;
    fails(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, result);
    assert_ptr_equal(info.errorNode, node);
    assert_ptr_equal(info.errorFromNode, from);
    succeeds(cuGraphDestroy(graph));
}

static void updates_say_what_differs(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph(), other;
    CUgraphNode a = add_store(graph, NULL, words, 1), b = add_store(graph, NULL, words + 4, 2);
    add_copy(graph, a, words + 8, words);
    CUgraphExec exec = instantiate(graph, 0);
    CUgraphExecUpdateResultInfo info;
    (void)b;

    other = new_graph();
    add_store(other, NULL, words, 1);
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);

    other = new_graph();
    a = add_store(other, NULL, words, 1);
    CUgraphNode copy = add_copy(other, a, words + 4, words);
    add_copy(other, a, words + 8, words);
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, copy, NULL);

    other = new_graph();
    add_store(other, NULL, words, 1);
    b = add_store(other, NULL, words + 4, 2);
    copy = add_copy(other, b, words + 8, words);
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, copy, b);

    other = new_graph();
    a = add_store(other, NULL, words, 1);
    b = add_store(other, a, words + 4, 2);
    add_copy(other, a, words + 8, words);
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, NULL);

    other = new_graph();
    a = add_store(other, NULL, words, 1);
    b = add_store(other, NULL, words + 4, 2);
    static uint32_t host[4];
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = words,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = host,
                         .WidthInBytes = 4,
                         .Height = 1,
                         .Depth = 1};
    succeeds(cuGraphAddMemcpyNode(&copy, other, &a, 1, &box, NULL));
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, copy, NULL);

    other = new_graph();
    a = add_store(other, NULL, words, 1);
    CUkernelNodeAttrValue cooperative = {.cooperative = 1};
    succeeds(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
    add_store(other, NULL, words + 4, 2);
    add_copy(other, a, words + 8, words);
    check_update(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, a, NULL);

    other = new_graph();
    a = add_store(other, NULL, words, 21);
    add_store(other, NULL, words + 4, 22);
    add_copy(other, a, words + 12, words);
    succeeds(cuGraphExecUpdate_v2(exec, other, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(exec);
    assert_int_equal(word_at(words + 12), 21);
    assert_int_equal(word_at(words + 4), 22);
    fails(cuGraphExecUpdate_v2(exec, NULL, &info), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
    succeeds(cuGraphDestroy(other));
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(graph));
}

static void a_child_in_an_executable_is_updated(void **unused)
{
    (void)unused;
    CUgraph child = new_graph(), parent = new_graph(), other = new_graph(), unlike = new_graph();
    CUgraphNode node;
    add_store(child, NULL, words, 1);
    add_store(other, NULL, words, 2);
    succeeds(cuGraphAddChildGraphNode(&node, parent, NULL, 0, child));
    CUgraphExec exec = instantiate(parent, 0);
    succeeds(cuGraphExecChildGraphNodeSetParams(exec, node, other));
    run(exec);
    assert_int_equal(word_at(words), 2);
    fails(cuGraphExecChildGraphNodeSetParams(exec, node, unlike), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphExecDestroy(exec));
    succeeds(cuGraphDestroy(parent));
    succeeds(cuGraphDestroy(child));
    succeeds(cuGraphDestroy(other));
    succeeds(cuGraphDestroy(unlike));
}

/* ---- objects, attributes, descriptions ---- */

static int destroyed;

static void destroy(void *number)
{
    destroyed += (int)(intptr_t)number;
}

static void user_objects_live_with_their_graphs(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph(), copy;
    CUuserObject object;
    destroyed = 0;
    fails(cuUserObjectCreate(&object, NULL, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
    fails(cuUserObjectCreate(&object, NULL, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuUserObjectCreate(&object, NULL, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuUserObjectCreate(&object, (void *)1, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    succeeds(cuUserObjectRetain(object, 1));
    succeeds(cuUserObjectRelease(object, 1));
    fails(cuUserObjectRelease(object, 0), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    fails(cuGraphReleaseUserObject(graph, object, 2), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuUserObjectRelease(object, 1));
    succeeds(cuGraphClone(&copy, graph));
    CUgraphExec exec = instantiate(graph, 0);
    succeeds(cuGraphDestroy(graph));
    succeeds(cuGraphDestroy(copy));
    assert_int_equal(destroyed, 0);
    succeeds(cuGraphExecDestroy(exec));
    assert_int_equal(destroyed, 1);
    fails(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
}

static void attributes_are_kept_and_copied(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    CUgraphNode first = add_store(graph, NULL, words, 1), second = add_store(graph, NULL, words + 4, 2);
    CUkernelNodeAttrValue value = {.priority = -3}, told;
    succeeds(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    succeeds(cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
    assert_int_equal(told.priority, -3);
    succeeds(cuGraphKernelNodeCopyAttributes(second, first));
    succeeds(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
    assert_int_equal(told.priority, -3);
    fails(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
          CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphDestroy(graph));
}

static void a_graph_describes_itself(void **unused)
{
    (void)unused;
    CUgraph graph = new_graph();
    char path[] = "/tmp/graph-XXXXXX", text[4096];
    int file = mkstemp(path);
    assert_true(file >= 0);
    add_copy(graph, add_store(graph, NULL, words, 1), words + 4, words);
    succeeds(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    ssize_t length = read(file, text, sizeof text - 1);
    assert_true(length > 0);
    text[length] = '\0';
    assert_non_null(strstr(text, "digraph"));
    assert_non_null(strstr(text, "store"));
    assert_non_null(strstr(text, "->"));
    close(file);
    unlink(path);
    fails(cuGraphDebugDotPrint(graph, "/nonexistent/graph.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
    fails(cuGraphDebugDotPrint(graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphDebugDotPrint(NULL, path, 0), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(memory_lives_between_its_nodes, clear),
        cmocka_unit_test_setup(memory_outlives_the_graph_until_freed, clear),
        cmocka_unit_test_setup(what_is_left_over_is_freed_on_demand, clear),
        cmocka_unit_test_setup(another_graph_may_free, clear),
        cmocka_unit_test_setup(graphs_with_memory_are_restricted, clear),
        cmocka_unit_test_setup(lack_of_memory_shows_at_the_launch, clear),
        cmocka_unit_test_setup(allocation_is_captured, clear),
        cmocka_unit_test_setup(memory_operations_are_nodes, clear),
        cmocka_unit_test_setup(a_launch_is_captured_as_a_child, clear),
        cmocka_unit_test_setup(one_executable_runs_once_at_a_time, clear),
        cmocka_unit_test_setup(nodes_that_are_not_done_are_refused, clear),
        cmocka_unit_test_setup(edges_carry_data, clear),
        cmocka_unit_test_setup(updates_say_what_differs, clear),
        cmocka_unit_test_setup(a_child_in_an_executable_is_updated, clear),
        cmocka_unit_test_setup(user_objects_live_with_their_graphs, clear),
        cmocka_unit_test_setup(attributes_are_kept_and_copied, clear),
        cmocka_unit_test_setup(a_graph_describes_itself, clear),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
