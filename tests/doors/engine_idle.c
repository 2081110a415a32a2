/* An engine that decides nothing: every call goes to the driver as it came. It counts what reached it and writes
 * the counts where --stats would go. The tests of the doors use it, and it is the floor for the benchmarks. */
#include "shim/config.h"
#include "shim/doors.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/say.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

enum counted { ALLOCATE, FREE, SUBMIT, PIN, SCAN, CHARGE, REFUND, SYNC, CAPTURED, OPAQUE, DESTROYED, COUNTED_COUNT };

static const char *const counted_names[COUNTED_COUNT] = {"allocate", "free", "submit",   "pin",    "scan",     "charge",
                                                         "refund",   "sync", "captured", "opaque", "destroyed"};
static _Atomic unsigned long counts[COUNTED_COUNT];

static void count(enum counted what)
{
    atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

bool engine_is_on(void)
{
    return config()->cap_bytes || config()->stats_path || config()->trace_path;
}

CUresult engine_allocate(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    count(ALLOCATE);
    return stream ? driver.cuMemAllocAsync(out, bytes, stream) : driver.cuMemAlloc_v2(out, bytes);
}

CUresult engine_free(CUdeviceptr address, CUstream stream, bool *is_ours)
{
    (void)address;
    (void)stream;
    count(FREE);
    *is_ours = false;
    return CUDA_SUCCESS;
}

bool engine_find(CUdeviceptr address, CUdeviceptr *base, size_t *bytes)
{
    (void)address;
    (void)base;
    (void)bytes;
    return false;
}

bool engine_owns(CUdeviceptr address)
{
    (void)address;
    return false;
}

void engine_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    *begin = 0;
    *end = 0;
}

CUresult engine_submit(struct operation *operation)
{
    count(SUBMIT);
    if (operation->is_captured)
        count(CAPTURED);
    if (operation->is_opaque)
        count(OPAQUE);
    return operation->forward(operation->call);
}

CUresult engine_pin(CUdeviceptr address, const char *reason)
{
    (void)address;
    (void)reason;
    count(PIN);
    return CUDA_SUCCESS;
}

CUresult engine_scan(const void *host, size_t bytes, CUdeviceptr destination)
{
    (void)host;
    (void)bytes;
    (void)destination;
    count(SCAN);
    return CUDA_SUCCESS;
}

CUresult engine_charge(size_t bytes, const char *what)
{
    (void)what;
    count(CHARGE);
    return config()->cap_bytes && bytes > config()->cap_bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void engine_refund(size_t bytes)
{
    (void)bytes;
    count(REFUND);
}

CUresult engine_charge_variables(size_t bytes)
{
    (void)bytes;
    return CUDA_SUCCESS;
}

void engine_refund_variables(size_t bytes)
{
    (void)bytes;
}

void engine_before_host_function(CUstream stream)
{
    (void)stream;
}

CUresult engine_after_sync(CUresult result)
{
    count(SYNC);
    return result;
}

void engine_stream_destroyed(CUstream stream)
{
    (void)stream;
    count(DESTROYED);
}

void engine_context_destroyed(CUcontext context)
{
    (void)context;
    count(DESTROYED);
}

bool engine_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    if (config()->cap_bytes == 0)
        return false;
    if (free_bytes)
        *free_bytes = config()->cap_bytes / 2;
    if (total_bytes)
        *total_bytes = config()->cap_bytes;
    return true;
}

static size_t add(char *text, size_t bytes, size_t used, const char *name, unsigned long long number)
{
    return used + say_format(text + used, bytes - used, "\"%s\": %llu, ", name, number);
}

void engine_finish(void)
{
    char text[2048];
    size_t used = say_format(text, sizeof text, "{");
    if (config()->stats_path == NULL)
        return;
    for (int i = 0; i < COUNTED_COUNT; i++)
        used = add(text, sizeof text, used, counted_names[i], counts[i]);
    for (int i = 0; i < DOOR_COUNT; i++)
        used = add(text, sizeof text, used, doors_name((enum door)i), doors_calls((enum door)i));
    used += say_format(text + used, sizeof text - used, "\"end\": 0}\n");
    int file = open(config()->stats_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || !say_write(file, text, used))
        say(SAY_ERROR, "cannot write %s", config()->stats_path);
    if (file >= 0)
        close(file);
}
