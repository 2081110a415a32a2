/* links: tests/device/whole.c */
/* Memory that graphs allocate and free. */
#include "tests/unit/device_graphs.h"

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

static cuuint64_t graph_bytes(CUgraphMem_attribute attribute)
{
    cuuint64_t bytes = 0;
    succeeds(cuDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

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
        succeeds(cuCtxSynchronize());
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
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
