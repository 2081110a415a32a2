#include "tests/device/driver.h"
#include "tests/device/copy.h"
#include "tests/device/context.h"
#include "tests/device/host_memory.h"
#include "tests/device/memory.h"
#include "tests/device/program.h"
#include "tests/device/settings.h"
#include <string.h>

#define PART_BYTES       ((size_t)1 << 20)
#define STAGED_BYTES_MAX ((size_t)1 << 20)

enum place { PLACE_DEVICE, PLACE_PINNED, PLACE_PAGEABLE };

static enum place place_of(uint64_t address)
{
    if (memory_is_device(address))
        return PLACE_DEVICE;
    struct host_range range;
    return host_memory_find((const void *)address, &range) ? PLACE_PINNED : PLACE_PAGEABLE;
}

CUresult copy_check_device(CUdeviceptr address, size_t bytes)
{
    if (!memory_is_device(address)) {
        struct host_range range;
        return host_memory_find((const void *)address, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = CUDA_SUCCESS;
    memory_lock();
    struct mapping *mapping = space_find(address);
    if (mapping == NULL) {
        if (reservation_find(address) == NULL)
            result = CUDA_ERROR_INVALID_VALUE;
    } else if (mapping->kind != MAPPING_VIRTUAL) {
        if (bytes > mapping->base + mapping->bytes - address)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    memory_unlock();
    return result;
}

static size_t span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    return (depth - 1) * slice + (height - 1) * pitch + width;
}

static CUresult check(const struct copy_work *copy, enum place destination, enum place source)
{
    if (copy->height > 1 && (copy->destination_pitch < copy->width || copy->source_pitch < copy->width))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    if (destination == PLACE_DEVICE)
        result = copy_check_device(copy->destination, span(copy->width, copy->height, copy->depth,
                                                           copy->destination_pitch, copy->destination_slice));
    if (result == CUDA_SUCCESS && source == PLACE_DEVICE)
        result = copy_check_device(
            copy->source, span(copy->width, copy->height, copy->depth, copy->source_pitch, copy->source_slice));
    return result;
}

/* A blocking copy from pageable memory may return once the bytes are staged, before they have arrived. Only the
 * adversary does. */
static bool may_return_early(enum place destination, enum place source)
{
    return settings()->jitter != 0 && destination == PLACE_DEVICE && source == PLACE_PAGEABLE;
}

static struct work *work_of(const struct copy_work *copy, enum place destination)
{
    struct work *work = work_new(WORK_COPY);
    work->copy = *copy;
    work->copy.is_to_host = destination != PLACE_DEVICE;
    return work;
}

/* Takes the host's bytes at the call, if they are one row of at most so many. */
static bool stage(struct work *work, size_t most)
{
    bool is_plain = work->copy.height == 1 && work->copy.depth == 1;
    if (!is_plain || work->copy.width > most)
        return false;
    void *staged = work_room(work, work->copy.width);
    memcpy(staged, (const void *)work->copy.source, work->copy.width);
    work->copy.source = (uint64_t)staged;
    work->copy.is_staged = true;
    return true;
}

bool copy_take_source(struct work *work)
{
    return place_of(work->copy.source) != PLACE_DEVICE && stage(work, SIZE_MAX);
}

CUresult copy_make_work(const struct copy_work *copy, struct work **out)
{
    enum place destination = place_of(copy->destination), source = place_of(copy->source);
    CUresult result = check(copy, destination, source);
    if (result == CUDA_SUCCESS)
        *out = work_of(copy, destination);
    return result;
}

CUresult copy_submit(struct context *context, struct stream *stream, const struct copy_work *copy, bool is_synchronous)
{
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return CUDA_SUCCESS;
    enum place destination = place_of(copy->destination), source = place_of(copy->source);
    CUresult result = check(copy, destination, source);
    if (result != CUDA_SUCCESS)
        return result;
    struct work *work = work_of(copy, destination);
    if (stream->capture != NULL && !is_synchronous)
        return work_take(stream, work);
    bool must_wait = destination == PLACE_PAGEABLE || (is_synchronous && (destination | source) != PLACE_DEVICE);
    if (must_wait && may_return_early(destination, source)) {
        stream_wait(stream);
        must_wait = false;
    }
    if (!must_wait && source == PLACE_PAGEABLE)
        must_wait = !stage(work, STAGED_BYTES_MAX);
    work_submit(stream, work);
    if (!must_wait)
        return CUDA_SUCCESS;
    stream_wait(stream);
    return context->error;
}

CUresult fill_make_work(const struct fill_work *fill, struct work **out)
{
    size_t row = fill->width * fill->element_bytes;
    if (fill->destination % fill->element_bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->element_bytes != 0))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = copy_check_device(fill->destination, (fill->height - 1) * fill->pitch + row);
    if (result != CUDA_SUCCESS)
        return result;
    *out = work_new(WORK_FILL);
    (*out)->fill = *fill;
    return CUDA_SUCCESS;
}

CUresult fill_submit(struct context *context, struct stream *stream, const struct fill_work *fill, bool is_synchronous)
{
    if (fill->width == 0 || fill->height == 0)
        return CUDA_SUCCESS;
    struct work *work;
    CUresult result = fill_make_work(fill, &work);
    if (result == CUDA_SUCCESS)
        result = work_take(stream, work);
    if (result != CUDA_SUCCESS || !is_synchronous || memory_is_device(fill->destination))
        return result;
    stream_wait(stream);
    return context->error;
}

uint64_t copy_parts(const struct copy_work *copy)
{
    if (copy->height > 1 || copy->depth > 1)
        return copy->depth;
    /* An overlapping copy is undefined in CUDA; in one piece it at least moves as memmove does. */
    if (copy->destination < copy->source + copy->width && copy->source < copy->destination + copy->width)
        return 1;
    return (copy->width + PART_BYTES - 1) / PART_BYTES;
}

void copy_run_part(void *subject, uint64_t part, struct program_worker *worker)
{
    const struct copy_work *copy = subject;
    (void)worker;
    if (copy->height > 1 || copy->depth > 1) {
        unsigned char *to = (unsigned char *)copy->destination + part * copy->destination_slice;
        const unsigned char *from = (const unsigned char *)copy->source + part * copy->source_slice;
        for (size_t row = 0; row < copy->height; row++)
            memmove(to + row * copy->destination_pitch, from + row * copy->source_pitch, copy->width);
        return;
    }
    bool is_whole = copy_parts(copy) == 1;
    size_t at = part * PART_BYTES, bytes = is_whole || copy->width - at < PART_BYTES ? copy->width - at : PART_BYTES;
    memmove((unsigned char *)copy->destination + at, (const unsigned char *)copy->source + at, bytes);
}

uint64_t fill_parts(const struct fill_work *fill)
{
    if (fill->height > 1)
        return fill->height;
    return (fill->width * fill->element_bytes + PART_BYTES - 1) / PART_BYTES;
}

static void fill_elements(void *to, size_t count, uint32_t element_bytes, uint32_t value)
{
    if (element_bytes == 1) {
        memset(to, (int)value, count);
    } else if (element_bytes == 2) {
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = (uint16_t)value;
    } else {
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)to)[i] = value;
    }
}

void fill_run_part(void *subject, uint64_t part, struct program_worker *worker)
{
    const struct fill_work *fill = subject;
    (void)worker;
    unsigned char *to = (unsigned char *)fill->destination;
    if (fill->height > 1) {
        fill_elements(to + part * fill->pitch, fill->width, fill->element_bytes, fill->value);
        return;
    }
    size_t per_part = PART_BYTES / fill->element_bytes, first = part * per_part;
    size_t count = fill->width - first < per_part ? fill->width - first : per_part;
    fill_elements(to + part * PART_BYTES, count, fill->element_bytes, fill->value);
}
