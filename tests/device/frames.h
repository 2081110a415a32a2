/* The devices' physical memory: frames of `frame_bytes`, pages of one memory file, so that mapping a frame at
 * two addresses makes a real alias.
 *
 * A `physical` is a set of frames with a count of holders (the handle itself and every mapping of it). Its
 * frames are in use from physical_create until the last holder lets go; frames_used() is their exact sum and
 * the high-water mark goes to stats. Extents count through the whole file: device d's frames follow those of d - 1.
 * Freed frames keep their bytes: fresh memory has no defined content.
 *
 * Locking: all of it under memory_lock (space.h). */
#pragma once
#include "tests/device/driver.h"
#include <sys/types.h>

struct extent {
    uint64_t first, count;
}; /* frames */

struct physical {
    enum handle_kind magic;
    uint32_t holders;
    size_t bytes;
    bool is_parked;
    int device;
    int file;        /* -1: the devices' own memory file; else see share.h; owned */
    bool is_foreign; /* another process's: not counted here */
    struct physical *next_shared;
    CUmemAllocationProp properties;
    uint32_t handle_count; /* cuMemCreate and cuMemRetainAllocationHandle, less cuMemRelease */
    uint32_t extent_count;
    struct extent extents[];
};

bool frames_open(unsigned device_count, size_t memory_bytes, size_t frame_bytes);
int frames_file(void);
size_t frames_bytes(void);      /* of one frame */
size_t frames_total(void);      /* bytes of a device */
size_t frames_used(int device); /* bytes in use */
size_t frames_free(int device); /* bytes that physical_create can take: neither used nor parked */

/* `bytes` is a multiple of the frame. NULL: out of memory. One holder: the caller. With a poison byte the
 * frames are filled with it (negative: left as they are). */
struct physical *physical_create(int device, size_t bytes, int poison);
/* One that has its bytes elsewhere (share.h): one holder, not accounted yet, file to be set. */
struct physical *physical_of_extents(const struct extent *extents, uint32_t count, size_t bytes);
void physical_account(struct physical *physical);
/* The one with that file, if it is not foreign; NULL if there is none. */
struct physical *physical_with_file(dev_t device, ino_t inode);
int physical_file(const struct physical *physical);
void physical_hold(struct physical *physical);
void physical_let_go(struct physical *physical);
/* Parked: not counted as used, though it keeps its frames (parking.h). */
void physical_park(struct physical *physical);
void physical_unpark(struct physical *physical);
