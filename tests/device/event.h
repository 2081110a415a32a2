/* Events: the latest fence recorded. Under queue_lock, except `flags`. */
#pragma once
#include "tests/device/stream.h"

struct node;

/* An event that other processes know: recorded counts records, passed says which of them is reached. */
struct event_page {
    _Atomic uint64_t recorded, passed;
};

struct event {
    enum handle_kind magic;
    struct context *context;
    uint32_t flags;
    struct fence *latest; /* NULL: never recorded, which counts as passed */
    uint64_t capture_id;  /* 0, or the capture in which it was last recorded: then not a real record */
    struct node **nodes;  /* what it stands for in that capture; under graph_lock */
    size_t node_count;
    struct event_page *page; /* CU_EVENT_INTERPROCESS, or opened from another process; else NULL */
    int page_file;
    struct event *next; /* spare list */
};

CUresult event_find(CUevent handle, struct event **out);

/* ipc.c: what an event between processes needs beside. */
CUresult event_share(struct event *event);
void event_unshare(struct event *event);

/* A new record: its fence becomes the latest, with a second hold for the work that passes it. */
struct fence *event_renew(struct event *event);
/* The latest fence with a hold of the caller's; NULL if never recorded. */
struct fence *event_latest(struct event *event);
