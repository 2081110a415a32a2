/* The tables behind frames.h: shared by frames.c and frames_assign.c, nobody else. */
#pragma once
#include "shim/frames.h"

#define FRAMES_MAX_EVENTS (1u << 23)

struct frame {
    CUmemGenericAllocationHandle handle;
    struct last_use last;    /* what used it before it became free */
    uint32_t next, previous; /* free list */
    uint32_t first_page;     /* pages that map it, chained by page.next_same */
    uint32_t owner;          /* page, or FRAMES_NONE if free */
    bool exists;
};

struct page {
    uint32_t frame;     /* mapped now, plus one; 0 = none */
    uint32_t next_same; /* next page with the same frame, plus one */
    uint32_t wanted;    /* frame assigned to it, plus one; 0 = none */
    bool has_access;    /* false: mapped, but an acquire failed before it could be used */
};

/* A page took a frame, or gave it up. */
struct event {
    uint32_t page;
    bool is_taken;
};

struct frames_table {
    bool is_open, is_strict, is_watching;
    struct event *events;
    uint32_t event_count;
    CUdevice device;
    CUdeviceptr begin, end;
    uint64_t frame_bytes;
    uint32_t page_count;
    struct page *pages;
    struct frame *frames;
    uint32_t cap, created, free_count, charged, peak;
    uint32_t free_head, free_tail;
    uint32_t empty_head, first_unused; /* frame slots whose handle was given back; slots never used */
    uint64_t driver_calls;
};

extern struct frames_table frames_state;
