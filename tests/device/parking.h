/* Freed allocations that keep their address range and their frames, out of reach (PROT_NONE), so that the next
 * allocation of the same size costs the host no page-table work.
 *
 * Parked frames count as free: they are not in frames_used(), and are given back as soon as anybody needs them.
 * Invariant: frames = used + parked + free. Under memory_lock. */
#pragma once
#include "tests/device/space.h"

/* Takes the mapping (MAPPING_ALLOCATION or MAPPING_SLAB, the only holder of its frames) out of use. */
void parking_put(struct mapping *mapping);
/* One of that device and of exactly that size, in use and accessible again, or NULL. */
struct mapping *parking_take(int device, size_t bytes);

/* physical_create, taking parked frames where free ones do not suffice. */
struct physical *parking_create_physical(int device, size_t bytes, int poison);
