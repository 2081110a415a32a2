/* Memory and events of cuMemAlloc and cuEventCreate in other processes. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/event.h"
#include "tests/device/memory.h"
#include "tests/device/share.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LABEL_BYTES 4096

_Static_assert(sizeof(struct share_ticket) <= CU_IPC_HANDLE_SIZE, "a ticket does not fit its handle");

/* What was opened, so that a second opening gives the same address. Under memory_lock. */
struct opened {
    struct share_ticket ticket;
    CUdeviceptr base; /* of the mapping */
    size_t bytes;
    uint32_t holders;
    struct opened *next;
};

static struct opened *all_opened;

/* ---- memory ---- */

/* Under memory_lock: the file that says where the mapping is, made at its first export; -1: no file. */
static int describe(struct mapping *mapping)
{
    if (mapping->ipc_file > 0)
        return mapping->ipc_file;
    const struct physical *physical = mapping->physical;
    size_t bytes = physical->extent_count * sizeof *physical->extents;
    size_t rounded = (bytes + LABEL_BYTES - 1) / LABEL_BYTES * LABEL_BYTES;
    struct share_label label = {
        .kind = SHARE_EXTENTS,
        .device_id = settings()->device_ids[physical->device],
        .bytes = mapping->bytes,
        .properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .memory_file = frames_file(),
        .frame_bytes = frames_bytes(),
        .extent_count = physical->extent_count};
    int file = memfd_create("cpu-device-extents", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)(rounded + LABEL_BYTES)) != 0 ||
        pwrite(file, physical->extents, bytes, 0) != (ssize_t)bytes ||
        pwrite(file, &label, sizeof label, (off_t)rounded) != (ssize_t)sizeof label) {
        if (file >= 0)
            close(file);
        return -1;
    }
    mapping->ipc_file = file;
    return file;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    struct context *context;
    struct allocation allocation;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || !memory_find(address, &allocation) || allocation.base != address)
        return CUDA_ERROR_INVALID_VALUE;
    bool is_plain = allocation.kind == MAPPING_ALLOCATION || allocation.kind == MAPPING_SLAB;
    if (!is_plain || allocation.pool != NULL || allocation.is_managed)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct mapping *mapping = space_find(address);
    int file = describe(mapping);
    struct share_ticket ticket = {.kind = SHARE_EXTENTS,
                                  .process = getpid(),
                                  .file = file,
                                  .offset = address - mapping->base,
                                  .bytes = allocation.bytes};
    memory_unlock();
    if (file < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(out, 0, sizeof *out);
    memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

/* Under memory_lock. */
static struct opened *open_memory(const struct share_ticket *ticket)
{
    int file = share_open_ticket(ticket);
    struct physical *physical = file >= 0 ? share_import_extents(file, ticket->process) : NULL;
    if (file >= 0)
        close(file);
    CUdeviceptr base = physical != NULL ? space_take(physical->bytes, frames_bytes()) : 0;
    if (base == 0) {
        if (physical != NULL)
            physical_let_go(physical);
        return NULL;
    }
    struct opened *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        abort();
    *opened = (struct opened){*ticket, base, physical->bytes, 0, all_opened};
    struct mapping *mapping = space_map(base, physical->bytes, physical, MAPPING_OPENED);
    mapping->asked_bytes = ticket->offset + ticket->bytes;
    physical_let_go(physical);
    if (!space_protect(base, opened->bytes, PROT_READ | PROT_WRITE)) {
        space_unmap(base, opened->bytes);
        space_give(base, opened->bytes);
        free(opened);
        return NULL;
    }
    all_opened = opened;
    return opened;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    struct context *context;
    struct share_ticket ticket;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(&ticket, &handle, sizeof ticket);
    if (out == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (ticket.kind != SHARE_EXTENTS)
        return CUDA_ERROR_INVALID_HANDLE;
    /* Not for the process that exports. */
    if (ticket.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    memory_lock();
    struct opened *opened = all_opened;
    while (opened != NULL && (opened->ticket.process != ticket.process || opened->ticket.file != ticket.file))
        opened = opened->next;
    if (opened == NULL)
        opened = open_memory(&ticket);
    if (opened != NULL) {
        opened->holders++;
        *out = opened->base + ticket.offset;
    }
    memory_unlock();
    return opened != NULL ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(out, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    device_wait();
    memory_lock();
    struct opened **link = &all_opened;
    while (*link != NULL && (address < (*link)->base || address >= (*link)->base + (*link)->bytes))
        link = &(*link)->next;
    struct opened *opened = *link;
    if (opened != NULL && --opened->holders == 0) {
        *link = opened->next;
        space_unmap(opened->base, opened->bytes);
        space_give(opened->base, opened->bytes);
        free(opened);
    }
    memory_unlock();
    return opened != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- events ---- */

static struct event_page *map_page(int file)
{
    void *page = mmap(NULL, sizeof(struct event_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return page != MAP_FAILED ? page : NULL;
}

CUresult event_share(struct event *event)
{
    struct share_label label = {.kind = SHARE_EVENT};
    int file = memfd_create("cpu-device-event", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 2 * LABEL_BYTES) != 0 ||
        pwrite(file, &label, sizeof label, LABEL_BYTES) != (ssize_t)sizeof label ||
        (event->page = map_page(file)) == NULL) {
        if (file >= 0)
            close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->page_file = file;
    return CUDA_SUCCESS;
}

void event_unshare(struct event *event)
{
    if (event->page == NULL)
        return;
    /* Work that is queued may still write to it. */
    device_wait();
    munmap(event->page, sizeof *event->page);
    close(event->page_file);
    event->page = NULL;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
    struct event *event;
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = event_find(handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event->page == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    struct share_ticket ticket = {.kind = SHARE_EVENT, .process = getpid(), .file = event->page_file};
    memset(out, 0, sizeof *out);
    memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    struct context *context;
    struct share_ticket ticket;
    struct share_label label;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(&ticket, &handle, sizeof ticket);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (ticket.kind != SHARE_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    int file = share_open_ticket(&ticket);
    struct event_page *page = file >= 0 && share_read_label(file, SHARE_EVENT, &label) ? map_page(file) : NULL;
    if (page == NULL) {
        if (file >= 0)
            close(file);
        return CUDA_ERROR_MAP_FAILED;
    }
    result = cuEventCreate(out, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
        struct event *event = (struct event *)*out;
        event->page = page;
        event->page_file = file;
    }
    return result;
}
