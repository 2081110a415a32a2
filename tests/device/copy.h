/* Copies and fills: what they check, when they return, how they run. */
#pragma once
#include "tests/device/stream.h"

struct program_worker;

/* Submits the copy. Pageable host memory: bytes to the device are staged (or the caller waits), bytes to the
 * host have arrived on return. `is_synchronous`: the blocking form of the call. */
CUresult copy_submit(struct context *context, struct stream *stream, const struct copy_work *copy, bool is_synchronous);
CUresult fill_submit(struct context *context, struct stream *stream, const struct fill_work *fill, bool is_synchronous);

/* The same as work for a graph: nothing is staged, host memory is read and written when it runs. */
CUresult copy_make_work(const struct copy_work *copy, struct work **out);
CUresult fill_make_work(const struct fill_work *fill, struct work **out);
/* Takes the bytes of a copy from host memory now, so that the source may go. False: not done. */
bool copy_take_source(struct work *work);
/* copy_rows.c: what a box means. */
CUresult copy_of_box(const CUDA_MEMCPY3D *box, struct copy_work *out);

/* Parts that may run at the same time. */
uint64_t copy_parts(const struct copy_work *copy);
void copy_run_part(void *copy, uint64_t part, struct program_worker *worker);
uint64_t fill_parts(const struct fill_work *fill);
void fill_run_part(void *fill, uint64_t part, struct program_worker *worker);

/* The device may touch all of [address, address + bytes): CUDA_SUCCESS, else CUDA_ERROR_INVALID_VALUE. Reserved
 * address space passes: whether something is mapped there is known when the work runs. */
CUresult copy_check_device(CUdeviceptr address, size_t bytes);
