#pragma once
#include "tests/device/event.h"
#include "tests/device/graph.h"

CUresult exec_find(CUgraphExec handle, struct graph_exec **out);
