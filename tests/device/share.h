/* Device memory that other processes may map: what is exported is a file descriptor, or words by which another process
 * finds one (/proc/PID/fd/N, which needs the same user).
 *
 * Shareable physical memory (cuMemCreate with a handle type, pools with one) is a memory file of its own, whose last
 * page holds a `share_label`; it lives until its last descriptor and mapping are gone. Ordinary allocations
 * (cuIpcGetMemHandle) are described by a small file that lists where in the exporter's memory file they are.
 * Memory that came from another process counts there, not here. */
#pragma once
#include "tests/device/frames.h"

enum share_kind {
    SHARE_MEMORY = 0x5348524d, /* physical memory: the label is behind its bytes */
    SHARE_POOL,
    SHARE_EXTENTS, /* an allocation in the exporter's memory file: its extents follow the label */
    SHARE_EVENT
};

struct share_label {
    enum share_kind kind;
    unsigned device_id; /* of settings_uuid */
    uint64_t bytes;
    uint64_t pool_id;
    CUmemAllocationProp properties;
    /* SHARE_EXTENTS */
    int memory_file; /* a descriptor of the exporter's */
    uint64_t frame_bytes;
    uint32_t extent_count;
};

/* What goes through an opaque handle of 64 bytes. */
struct share_ticket {
    uint32_t kind;
    int32_t process, file;
    uint32_t reserved;
    uint64_t offset, bytes, pool_id;
};

/* A descriptor of the caller's for the file that the ticket names; -1 if it cannot be opened. */
int share_open_ticket(const struct share_ticket *ticket);
/* Reads and checks the label of that kind. */
bool share_read_label(int file, enum share_kind kind, struct share_label *out);
/* The visible device of that id, or -1. */
int share_device(unsigned device_id);

/* Under memory_lock. A new memory file with its label; NULL: out of memory. One holder: the caller. */
struct physical *share_create_physical(int device, size_t bytes, const CUmemAllocationProp *properties,
                                       uint64_t pool_id);
/* The physical memory behind a SHARE_MEMORY file: the one of this process if it is its own, else a foreign one. One
 * more holder. NULL: no such memory. Leaves the descriptor to the caller. */
struct physical *share_import_physical(int file);
/* The same for a SHARE_EXTENTS file of another process. */
struct physical *share_import_extents(int file, int process);
