/* What records refer to by number: names, modules, stacks, threads. Each is defined once, by a record of its own.
 *
 * The definitions of a run are one log of records in the order of the file, in memory that never moves. Any thread adds
 * to it, under the log's own lock; whoever writes the file copies what is new. A number that was handed out is
 * in the log already. No malloc; address space is taken once, pages as they are used. When the log is full, or
 * there are too many, the number is 0: not known.
 *
 * Stacks are told apart by a 64-bit hash of what they consist of, modules by path and place: a library that is unloaded
 * and another one that takes its place are two modules, but a stack whose addresses were seen before keeps the module
 * it had then. */
#pragma once
#include "trace/event.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define DEFINITIONS_BYTES       (1ull << 28) /* of the log */
#define DEFINITIONS_NAME_SLOTS  (1u << 17)   /* names and stacks: up to half as many */
#define DEFINITIONS_STACK_SLOTS (1u << 17)
#define DEFINITIONS_MODULES     4096u

struct definitions_slot {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t number;
};

struct definitions_module {
    uint64_t bias, begin, end;
    uint32_t name;
};

struct definitions {
    pthread_mutex_t lock;
    unsigned char *log;
    _Atomic uint64_t log_bytes;
    uint32_t name_count, stack_count, thread_count;
    _Atomic uint32_t module_count;
    struct definitions_slot names[DEFINITIONS_NAME_SLOTS];
    struct definitions_slot stacks[DEFINITIONS_STACK_SLOTS];
    struct definitions_module modules[DEFINITIONS_MODULES];
};

/* NULL with errno: no address space. Lives until definitions_close. */
struct definitions *definitions_open(void);
void definitions_close(struct definitions *definitions);

uint32_t definitions_name(struct definitions *definitions, const char *name);
uint32_t definitions_thread(struct definitions *definitions, uint32_t id, const char *name);

/* The number of the stack with this hash (not 0); 0: not seen before. Takes no lock. */
uint32_t definitions_find_stack(const struct definitions *definitions, uint64_t hash);

/* Defines it, unless another thread did meanwhile. Python frames stand in it with names of this log. Native frames hold
 * the return address in `offset` and module 0: it is found here. Asks the dynamic linker for what is loaded, so
 * the caller holds no lock that a constructor could wait for. */
uint32_t definitions_add_stack(struct definitions *definitions, uint64_t hash, struct trace_frame *frames,
                               uint32_t count, bool is_cut);

/* What was defined from byte `from` of the log on. */
const void *definitions_since(const struct definitions *definitions, uint64_t from, size_t *bytes);
