/* The Python frames that led here, if this thread is in an interpreter.
 *
 * Found through public C functions of CPython (3.9 or later) that the process happens to hold; nothing is linked.
 * Frames are read only with the interpreter's lock. A thread that holds it is read at once. One that gave it up is
 * read only in a call through ctypes or cffi: these take the lock again right after the call, so taking it
 * before as well adds no wait that the program does not know. Other threads without the lock have no Python frames.
 * While frames are read the garbage collector is off and a pending exception is set aside: no code of the program
 * runs. Code objects that are part of a stack are kept for ever, so that their addresses tell them apart.
 * Before any lock of ours is taken. */
#pragma once
#include "trace/definitions.h"

struct python_place {
    void *code; /* a reference of ours until python_release */
    int line;
};

struct python_frames {
    struct python_place frames[TRACE_STACK_MOST]; /* innermost first */
    uint32_t count;
    bool is_cut, was_taken; /* was_taken: the interpreter's lock, by us */
    int taken, had_collector;
};

/* Fills *out; count 0: not in Python. If it is not, the interpreter's lock is held until python_release. `addresses`:
 * the native calls, our own first ones left out. */
void python_capture(struct python_frames *out, void *const *addresses, uint32_t count);
uint64_t python_hash(uint64_t before, const struct python_frames *frames);

/* Between capture and release: the frame with its names; its code object is kept. */
struct trace_frame python_frame(struct definitions *into, struct python_place *place);
void python_release(struct python_frames *frames);

/* Is this code of the interpreter? */
bool python_owns(const void *address);
