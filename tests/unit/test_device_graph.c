/* links: tests/device/whole.c */
#include "tests/unit/device_graphs.h"

static uint32_t word(size_t index)
{
    return word_at(words + 4 * index);
}

static CUDA_MEMCPY3D word_copy(size_t to, size_t from)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = words + 4 * from,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = words + 4 * to,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
}

static void run_once(CUgraph graph)
{
    CUgraphExec exec;
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0));
    succeeds(cuGraphLaunch(exec, NULL));
    succeeds(cuCtxSynchronize());
    succeeds(cuGraphExecDestroy(exec));
}

static void nodes_run_after_what_they_wait_for(void **unused)
{
    (void)unused;
    CUgraph graph;
    CUgraphNode fill, copy;
    succeeds(cuGraphCreate(&graph, 0));
    CUgraphNode first = add_store(graph, NULL, words + 4 * 0, 7);
    CUDA_MEMCPY3D box = word_copy(1, 0);
    succeeds(cuGraphAddMemcpyNode(&copy, graph, &first, 1, &box, NULL));
    CUDA_MEMSET_NODE_PARAMS set = {.dst = words, .value = 9, .elementSize = 4, .width = 1, .height = 1};
    succeeds(cuGraphAddMemsetNode(&fill, graph, &copy, 1, &set, NULL));
    box = word_copy(2, 0);
    succeeds(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &box, NULL));
    run_once(graph);
    assert_int_equal(word(0), 9);
    assert_int_equal(word(1), 7);
    assert_int_equal(word(2), 9);
    succeeds(cuGraphDestroy(graph));
}

static void an_executable_is_changed_by_its_own_calls_only(void **unused)
{
    (void)unused;
    CUgraph graph;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS params;
    succeeds(cuGraphCreate(&graph, 0));
    CUgraphNode node = add_store(graph, NULL, words + 4 * 3, 1);
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0));
    succeeds(cuGraphKernelNodeGetParams_v2(node, &params));
    assert_ptr_equal(params.func, function("store"));
    assert_int_equal(*(uint32_t *)params.kernelParams[1], 1);
    uint32_t value = 2;
    CUdeviceptr address = words + 12;
    void *pointers[] = {&address, &value};
    params.kernelParams = pointers;
    succeeds(cuGraphKernelNodeSetParams_v2(node, &params));
    succeeds(cuGraphLaunch(exec, NULL));
    assert_int_equal(word(3), 1);
    value = 3;
    succeeds(cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    succeeds(cuGraphLaunch(exec, NULL));
    assert_int_equal(word(3), 3);
    unsigned is_enabled = 7;
    succeeds(cuMemsetD32_v2(words, 0, 16));
    succeeds(cuGraphNodeSetEnabled(exec, node, 0));
    succeeds(cuGraphNodeGetEnabled(exec, node, &is_enabled));
    assert_int_equal(is_enabled, 0);
    succeeds(cuGraphLaunch(exec, NULL));
    assert_int_equal(word(3), 0);
    succeeds(cuGraphNodeSetEnabled(exec, node, 1));
    CUgraphExecUpdateResultInfo info;
    succeeds(cuGraphExecUpdate_v2(exec, graph, &info));
    succeeds(cuGraphLaunch(exec, NULL));
    assert_int_equal(word(3), 2);
    add_store(graph, node, words + 4 * 4, 5);
    fails(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    succeeds(cuGraphDestroy(graph));
    succeeds(cuGraphLaunch(exec, NULL));
    succeeds(cuGraphExecDestroy(exec));
}

static void a_graph_can_be_asked(void **unused)
{
    (void)unused;
    CUgraph graph, clone;
    CUgraphNode nodes[8], from[8], to[8], found;
    CUgraphNodeType type;
    size_t count = 0;
    succeeds(cuGraphCreate(&graph, 0));
    CUgraphNode a = add_store(graph, NULL, words + 4 * 0, 1), b = add_store(graph, a, words + 4 * 1, 1),
                c = add_store(graph, NULL, words + 4 * 2, 1);
    succeeds(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 3);
    count = 8;
    succeeds(cuGraphGetRootNodes(graph, nodes, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(nodes[1], c);
    assert_null(nodes[2]);
    succeeds(cuGraphAddDependencies(graph, &b, &c, 1));
    fails(cuGraphAddDependencies(graph, &b, &c, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphAddDependencies(graph, &c, &a, 1), CUDA_ERROR_INVALID_VALUE);
    count = 8;
    succeeds(cuGraphGetEdges(graph, from, to, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(from[1], b);
    assert_ptr_equal(to[1], c);
    count = 8;
    succeeds(cuGraphNodeGetDependentNodes(a, nodes, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(nodes[0], b);
    succeeds(cuGraphNodeGetType(a, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    succeeds(cuGraphClone(&clone, graph));
    succeeds(cuGraphNodeFindInClone(&found, c, clone));
    assert_ptr_not_equal(found, c);
    succeeds(cuGraphDestroyNode(b));
    succeeds(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 2);
    succeeds(cuGraphGetNodes(clone, NULL, &count));
    assert_int_equal(count, 3);
    fails(cuGraphRemoveDependencies(graph, &a, &c, 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuGraphDestroy(graph));
    succeeds(cuGraphDestroy(clone));
    fails(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuGraphDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void children_run_in_their_place(void **unused)
{
    (void)unused;
    CUgraph parent, child, inner;
    CUgraphNode node, last;
    succeeds(cuGraphCreate(&parent, 0));
    succeeds(cuGraphCreate(&child, 0));
    CUDA_MEMCPY3D box = word_copy(1, 0);
    succeeds(cuGraphAddMemcpyNode(&node, child, NULL, 0, &box, NULL));
    CUgraphNode first = add_store(parent, NULL, words + 4 * 0, 21);
    succeeds(cuGraphAddChildGraphNode(&node, parent, &first, 1, child));
    box = word_copy(2, 1);
    succeeds(cuGraphAddMemcpyNode(&last, parent, &node, 1, &box, NULL));
    succeeds(cuGraphChildGraphNodeGetGraph(node, &inner));
    assert_ptr_not_equal(inner, child);
    succeeds(cuGraphDestroy(child));
    run_once(parent);
    assert_int_equal(word(2), 21);
    succeeds(cuGraphDestroy(parent));
}

static CUstream stream_of(unsigned flags)
{
    CUstream own;
    succeeds(cuStreamCreate(&own, flags));
    return own;
}

static void store_in(CUstream own, size_t index, uint32_t value)
{
    CUdeviceptr address = words + 4 * index;
    void *params[] = {&address, &value};
    succeeds(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, own, params, NULL));
}

static void a_capture_records_and_does_not_run(void **unused)
{
    (void)unused;
    CUstream own = stream_of(CU_STREAM_NON_BLOCKING), other = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent fork, join;
    CUgraph graph;
    CUstreamCaptureStatus status;
    size_t count;
    succeeds(cuEventCreate(&fork, 0));
    succeeds(cuEventCreate(&join, 0));
    succeeds(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    store_in(own, 0, 5);
    succeeds(cuEventRecord(fork, own));
    succeeds(cuStreamWaitEvent(other, fork, 0));
    succeeds(cuMemcpyDtoDAsync_v2(words + 4, words, 4, other));
    succeeds(cuMemsetD32Async(words + 8, 6, 1, own));
    succeeds(cuEventRecord(join, other));
    succeeds(cuStreamWaitEvent(own, join, 0));
    succeeds(cuMemcpyDtoDAsync_v2(words + 12, words + 4, 8, own));
    succeeds(cuStreamIsCapturing(other, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    fails(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    succeeds(cuStreamEndCapture(own, &graph));
    succeeds(cuStreamIsCapturing(other, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(word(0), 0);
    succeeds(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    succeeds(cuGraphGetEdges(graph, NULL, NULL, &count));
    assert_int_equal(count, 4);
    for (int i = 0; i < 5; i++) {
        succeeds(cuMemsetD32_v2(words, 0, 16));
        run_once(graph);
        assert_int_equal(word(3), 5);
        assert_int_equal(word(4), 6);
    }
    succeeds(cuGraphDestroy(graph));
    succeeds(cuEventDestroy_v2(fork));
    succeeds(cuEventDestroy_v2(join));
    succeeds(cuStreamDestroy_v2(own));
    succeeds(cuStreamDestroy_v2(other));
}

static void what_cannot_be_captured_spoils_it(void **unused)
{
    (void)unused;
    CUstream own = stream_of(CU_STREAM_NON_BLOCKING), blocking = stream_of(CU_STREAM_DEFAULT);
    CUgraph graph;
    CUdeviceptr memory;
    CUevent event;
    succeeds(cuEventCreate(&event, 0));
    fails(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fails(cuStreamEndCapture(own, &graph), CUDA_ERROR_ILLEGAL_STATE);
    succeeds(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    fails(cuStreamSynchronize(own), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fails(cuMemsetD32Async(words, 6, 1, own), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fails(cuStreamEndCapture(own, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    succeeds(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(cuMemAlloc_v2(&memory, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fails(cuStreamEndCapture(own, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    succeeds(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_RELAXED));
    succeeds(cuMemAlloc_v2(&memory, 4));
    succeeds(cuMemFree_v2(memory));
    succeeds(cuStreamEndCapture(own, &graph));
    succeeds(cuGraphDestroy(graph));
    /* A branch that is not joined. */
    succeeds(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_RELAXED));
    succeeds(cuEventRecord(event, own));
    succeeds(cuStreamWaitEvent(blocking, event, 0));
    succeeds(cuMemsetD32Async(words, 6, 1, blocking));
    fails(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    fails(cuStreamEndCapture(own, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    /* The legacy own would wait for a captured blocking one. */
    succeeds(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    fails(cuMemsetD32Async(words, 6, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    fails(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(word(0), 0);
    succeeds(cuEventDestroy_v2(event));
    succeeds(cuStreamDestroy_v2(own));
    succeeds(cuStreamDestroy_v2(blocking));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nodes_run_after_what_they_wait_for, clear),
        cmocka_unit_test_setup(an_executable_is_changed_by_its_own_calls_only, clear),
        cmocka_unit_test_setup(a_graph_can_be_asked, clear),
        cmocka_unit_test_setup(children_run_in_their_place, clear),
        cmocka_unit_test_setup(a_capture_records_and_does_not_run, clear),
        cmocka_unit_test_setup(what_cannot_be_captured_spoils_it, clear),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
