/* Where events go: a ring per thread, one thread of ours that empties them into the trace file.
 *
 * Nobody waits for anybody: an event that finds no room is lost and counted. Numbers of the sequence are given out with
 * the room, so none is missing. The file is made when the program first uses the device, never in a child of fork; what
 * is in the rings is written at the latest RECORDER_REST_NS later, at exit all of it. If the file cannot be made or
 * written it is said once, and the program goes on without.
 *
 * Our thread is made with all signals blocked; it calls nothing of the program's and no driver function. */
#pragma once
#include "trace/event.h"

#include <stdatomic.h>

#define RECORDER_REST_NS 20000000

/* Events are wanted: a trace was asked for, and nothing has failed so far. */
bool recorder_is_wanted(void);

/* The number of the calls that led here, the Python ones too; 0: not known. Before any lock is taken: it may enter the
 * dynamic linker and the interpreter. */
uint32_t recorder_stack(void);

/* A name's number. Any time after recorder_is_wanted. */
uint32_t recorder_name(const char *name);

/* Makes the file and the thread; to be called once. `run` needs no process and rank. False: said why; nothing is
 * recorded. */
bool recorder_open(const struct trace_run *run);

extern _Atomic bool recorder_on; /* recorder.c's */
static inline bool recorder_is_open(void)
{
    return atomic_load_explicit(&recorder_on, memory_order_acquire);
}

/* Room for an event of `bytes` in all, its head filled in; NULL: there is none, or the recorder is not open. It counts
 * from recorder_commit on; nothing else may be recorded by this thread in between. */
void *recorder_event(enum trace_kind kind, size_t bytes, uint32_t stack);
void recorder_commit(void);

/* Whole records (an analysed iteration), `bytes` of them behind a head of RECORDER_GIVE_HEAD bytes, in memory of
 * store_reserve of which `mapped` bytes were reserved: written as one piece, and given back. */
#define RECORDER_GIVE_HEAD 32
void recorder_give(void *memory, size_t bytes, size_t mapped);

uint64_t recorder_lost(void); /* events, so far */

/* Writes what is left and completes the file. Waits for the disk, RECORDER_END_SECONDS at most. */
#define RECORDER_END_SECONDS 30
void recorder_finish(void);
