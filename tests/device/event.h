/* Events: the latest fence recorded. Under queue_lock, except `flags`. */
#pragma once
#include "tests/device/stream.h"

struct event {
    enum handle_kind magic;
    struct context *context;
    uint32_t flags;
    struct fence *latest; /* NULL: never recorded, which counts as passed */
    struct event *next;   /* spare list */
};

CUresult event_find(CUevent handle, struct event **out);
