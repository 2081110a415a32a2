/* What a capture is, inside capture*.c. Under graph_lock. */
#pragma once
#include "tests/device/capture.h"
#include "tests/device/graph.h"
#include <pthread.h>

struct branch {
    struct stream *stream;
    struct node **tail; /* the next node of the stream depends on these */
    size_t count;
};

struct capture {
    uint64_t id;
    struct graph *graph;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool is_invalid;
    bool is_graph_owned;     /* false: captured into a graph of the program's */
    struct branch *branches; /* the origin's is the first */
    size_t branch_count;
    struct capture *next;
};

/* The stream's part in the capture, or NULL. */
struct branch *capture_branch(struct capture *capture, const struct stream *stream);
/* The branch's next node will wait for this one too. */
void capture_add_to_tail(struct branch *branch, struct node *node);
