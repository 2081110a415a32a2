/* links: tests/device/whole.c */
/* Graphs: memory operations, edges with data, updates, user objects, descriptions. */
#include "tests/unit/device_graphs.h"
#include <stdio.h>
#include <unistd.h>

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

/* The graph of updates_say_what_differs, but a copy to the host, or a cooperative launch. */
static void check_contents(CUgraphExec exec)
{
    static uint32_t host[4];
    CUgraphNode copy;
    CUgraph other = new_graph();
    CUgraphNode a = add_store(other, NULL, words, 1);
    add_store(other, NULL, words + 4, 2);
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

    check_contents(exec);

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
