/* An engine that only keeps account of charges and a driver that only says yes or no, for tests of the hooks that
 * charge for memory. The arena is [0x900000, 0xa00000); CUfunction 1 has one pointer as its parameter, others are not
 * explained. */
#pragma once
#include "shim/launch.h"

struct charging {
    int64_t charged; /* bytes, now */
    uint64_t room;
    CUresult driver_answer;
    bool is_capturing;
    unsigned closed, submitted, opaque;
    CUdeviceptr pinned;
    struct set_arguments set;
    uint64_t pool_reserved, graph_reserved;
    size_t limit;
};

extern struct charging test;

int charging_set_up(void **state); /* for cmocka: everything anew, room for 10000 bytes */
