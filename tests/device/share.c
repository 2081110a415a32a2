#include "tests/device/driver.h"
#include "tests/device/share.h"
#include "tests/device/settings.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL_BYTES 4096

static int open_descriptor(int process, int file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    return open(path, O_RDWR | O_CLOEXEC);
}

int share_open_ticket(const struct share_ticket *ticket)
{
    return open_descriptor(ticket->process, ticket->file);
}

bool share_read_label(int file, enum share_kind kind, struct share_label *out)
{
    struct stat facts;
    if (fstat(file, &facts) != 0 || facts.st_size < LABEL_BYTES)
        return false;
    if (pread(file, out, sizeof *out, facts.st_size - LABEL_BYTES) != (ssize_t)sizeof *out || out->kind != kind)
        return false;
    return kind != SHARE_MEMORY || out->bytes == (uint64_t)facts.st_size - LABEL_BYTES;
}

int share_device(unsigned device_id)
{
    for (unsigned i = 0; i < settings()->device_count; i++)
        if (settings()->device_ids[i] == device_id)
            return (int)i;
    return -1;
}

static struct physical *physical_of_file(int device, int file, const struct share_label *label, bool is_foreign)
{
    struct extent whole = {0, label->bytes / frames_bytes()};
    struct physical *physical = physical_of_extents(&whole, 1, label->bytes);
    physical->device = device;
    physical->file = file;
    physical->is_foreign = is_foreign;
    physical->properties = label->properties;
    physical->properties.location.id = device;
    return physical;
}

struct physical *share_create_physical(int device, size_t bytes, const CUmemAllocationProp *properties,
                                       uint64_t pool_id)
{
    if (bytes > frames_total() - frames_used(device))
        return NULL;
    int file = memfd_create("cpu-device-shared", MFD_CLOEXEC);
    struct share_label label = {.kind = SHARE_MEMORY,
                                .device_id = settings()->device_ids[device],
                                .bytes = bytes,
                                .pool_id = pool_id,
                                .properties = *properties};
    if (file < 0 || ftruncate(file, (off_t)(bytes + LABEL_BYTES)) != 0 ||
        pwrite(file, &label, sizeof label, (off_t)bytes) != (ssize_t)sizeof label) {
        if (file >= 0)
            close(file);
        return NULL;
    }
    struct physical *physical = physical_of_file(device, file, &label, false);
    physical_account(physical);
    return physical;
}

struct physical *share_import_physical(int file)
{
    struct share_label label;
    struct stat facts;
    if (!share_read_label(file, SHARE_MEMORY, &label) || fstat(file, &facts) != 0)
        return NULL;
    int device = share_device(label.device_id);
    if (device < 0 || label.bytes == 0 || label.bytes % frames_bytes() != 0)
        return NULL;
    struct physical *known = physical_with_file(facts.st_dev, facts.st_ino);
    if (known != NULL) {
        physical_hold(known);
        return known;
    }
    int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return own < 0 ? NULL : physical_of_file(device, own, &label, true);
}

struct physical *share_import_extents(int file, int process)
{
    struct share_label label;
    struct extent *extents = NULL;
    struct physical *physical = NULL;
    int memory = -1, device = -1;
    if (share_read_label(file, SHARE_EXTENTS, &label) && label.frame_bytes == frames_bytes())
        device = share_device(label.device_id);
    if (device >= 0)
        memory = open_descriptor(process, label.memory_file);
    size_t bytes = device >= 0 ? label.extent_count * sizeof *extents : 0;
    if (memory >= 0)
        extents = malloc(bytes);
    if (extents != NULL && pread(file, extents, bytes, 0) == (ssize_t)bytes) {
        physical = physical_of_extents(extents, label.extent_count, label.bytes);
        physical->device = device;
        physical->file = memory;
        physical->is_foreign = true;
        physical->properties = label.properties;
    } else if (memory >= 0) {
        close(memory);
    }
    free(extents);
    return physical;
}
