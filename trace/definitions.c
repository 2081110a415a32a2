#include "trace/definitions.h"
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATH_MOST 4096

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

struct definitions *definitions_open(void)
{
    struct definitions *definitions = map(sizeof *definitions);
    if (!definitions)
        return NULL;
    pthread_mutex_init(&definitions->lock, NULL);
    definitions->log = map(DEFINITIONS_BYTES);
    if (!definitions->log) {
        int error = errno;
        munmap(definitions, sizeof *definitions);
        errno = error;
        return NULL;
    }
    return definitions;
}

void definitions_close(struct definitions *definitions)
{
    munmap(definitions->log, DEFINITIONS_BYTES);
    munmap(definitions, sizeof *definitions);
}

static uint64_t hash_bytes(const char *bytes, size_t count)
{
    uint64_t hash = 0x2545f4914f6cdd1du ^ count;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    return hash | 1;
}

/* The slot of this hash, or the free one where it belongs. */
static const struct definitions_slot *find(const struct definitions_slot *slots, uint32_t count, uint64_t hash)
{
    for (uint32_t at = (uint32_t)(hash >> 32) % count;; at = (at + 1) % count) {
        uint64_t found = atomic_load_explicit(&slots[at].hash, memory_order_acquire);
        if (found == hash || found == 0)
            return &slots[at];
    }
}

static uint32_t number_of(const struct definitions_slot *slot, uint64_t hash)
{
    return atomic_load_explicit(&slot->hash, memory_order_acquire) == hash
               ? atomic_load_explicit(&slot->number, memory_order_relaxed)
               : 0;
}

static void fill_slot(struct definitions_slot *slots, uint32_t count, uint64_t hash, uint32_t number)
{
    struct definitions_slot *slot = &slots[find(slots, count, hash) - slots];
    atomic_store_explicit(&slot->number, number, memory_order_relaxed);
    atomic_store_explicit(&slot->hash, hash, memory_order_release);
}

/* Under the lock: a record of `head` and `rest`. False: the log is full. */
static bool add_record(struct definitions *definitions, uint32_t kind, const void *head, size_t head_bytes,
                       const void *rest, size_t rest_bytes)
{
    uint64_t used = atomic_load_explicit(&definitions->log_bytes, memory_order_relaxed);
    struct trace_record record = {kind, (uint32_t)((sizeof record + head_bytes + rest_bytes + 7) & ~(size_t)7)};
    if (record.bytes > DEFINITIONS_BYTES - used)
        return false;
    unsigned char *at = definitions->log + used; /* zeros */
    memcpy(at, &record, sizeof record);
    memcpy(at + sizeof record, head, head_bytes);
    memcpy(at + sizeof record + head_bytes, rest, rest_bytes);
    atomic_store_explicit(&definitions->log_bytes, used + record.bytes, memory_order_release);
    return true;
}

static uint32_t add_name(struct definitions *definitions, const char *name, size_t length, uint64_t hash)
{
    uint32_t number = number_of(find(definitions->names, DEFINITIONS_NAME_SLOTS, hash), hash);
    struct trace_name head = {definitions->name_count + 1, (uint32_t)length};
    if (number != 0 || definitions->name_count == DEFINITIONS_NAME_SLOTS / 2 ||
        !add_record(definitions, TRACE_NAME, &head, sizeof head, name, length))
        return number;
    definitions->name_count++;
    fill_slot(definitions->names, DEFINITIONS_NAME_SLOTS, hash, head.number);
    return head.number;
}

uint32_t definitions_name(struct definitions *definitions, const char *name)
{
    if (!name || !*name)
        return 0;
    size_t length = strnlen(name, TRACE_NAME_MOST);
    uint64_t hash = hash_bytes(name, length);
    uint32_t number = number_of(find(definitions->names, DEFINITIONS_NAME_SLOTS, hash), hash);
    if (number != 0)
        return number;
    pthread_mutex_lock(&definitions->lock);
    number = add_name(definitions, name, length, hash);
    pthread_mutex_unlock(&definitions->lock);
    return number;
}

uint32_t definitions_thread(struct definitions *definitions, uint32_t id, const char *name)
{
    uint32_t named = definitions_name(definitions, name);
    pthread_mutex_lock(&definitions->lock);
    struct trace_thread thread = {definitions->thread_count + 1, id, named, 0};
    bool is_added = add_record(definitions, TRACE_THREAD, &thread, sizeof thread, "", 0);
    definitions->thread_count += is_added;
    pthread_mutex_unlock(&definitions->lock);
    return is_added ? thread.number : 0;
}

/* Modules */

static void read_build_id(const struct dl_phdr_info *info, struct trace_module *module)
{
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        const char *end = at + segment->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *content = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
                note->n_descsz <= TRACE_BUILD_ID_MOST) {
                module->build_id_bytes = note->n_descsz;
                memcpy(module->build_id, content, note->n_descsz);
                return;
            }
            at = content + ((note->n_descsz + 3) & ~3u);
        }
    }
}

/* The part of it that can be run. */
static bool read_range(const struct dl_phdr_info *info, uint64_t *begin, uint64_t *end)
{
    *begin = UINT64_MAX;
    *end = 0;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t first = info->dlpi_addr + segment->p_vaddr, last = first + segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        *begin = first < *begin ? first : *begin;
        *end = last > *end ? last : *end;
    }
    return *begin < *end;
}

static const char *path_of(const struct dl_phdr_info *info, char *buffer)
{
    if (info->dlpi_name && *info->dlpi_name)
        return info->dlpi_name;
    ssize_t length = readlink("/proc/self/exe", buffer, PATH_MOST - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return buffer;
}

/* Under the lock. */
static void add_module(struct definitions *definitions, const struct dl_phdr_info *info, const char *path)
{
    uint32_t count = atomic_load_explicit(&definitions->module_count, memory_order_relaxed);
    struct trace_module module = {.number = count + 1, .bias = info->dlpi_addr};
    if (!read_range(info, &module.begin, &module.end) || count == DEFINITIONS_MODULES)
        return;
    size_t length = strnlen(path, TRACE_NAME_MOST);
    module.path = length ? add_name(definitions, path, length, hash_bytes(path, length)) : 0;
    for (uint32_t i = count; i-- > 0;) {
        const struct definitions_module *known = &definitions->modules[i];
        if (known->bias == module.bias && known->begin == module.begin && known->name == module.path)
            return;
    }
    read_build_id(info, &module);
    if (!add_record(definitions, TRACE_MODULE, &module, sizeof module, "", 0))
        return;
    definitions->modules[count] = (struct definitions_module){module.bias, module.begin, module.end, module.path};
    atomic_store_explicit(&definitions->module_count, count + 1, memory_order_release);
}

/* The lock is ours only while an entry is added: the dynamic linker's own is held around this. */
static int note_module(struct dl_phdr_info *info, size_t size, void *opaque)
{
    struct definitions *definitions = opaque;
    char buffer[PATH_MOST];
    (void)size;
    const char *path = path_of(info, buffer);
    pthread_mutex_lock(&definitions->lock);
    add_module(definitions, info, path);
    pthread_mutex_unlock(&definitions->lock);
    return 0;
}

/* Newest first: what was unloaded may lie where another is now. 0: no module. */
static uint32_t module_at(const struct definitions *definitions, uint64_t address)
{
    for (uint32_t i = atomic_load_explicit(&definitions->module_count, memory_order_acquire); i-- > 0;)
        if (address >= definitions->modules[i].begin && address < definitions->modules[i].end)
            return i + 1;
    return 0;
}

/* Stacks */

uint32_t definitions_find_stack(const struct definitions *definitions, uint64_t hash)
{
    return number_of(find(definitions->stacks, DEFINITIONS_STACK_SLOTS, hash), hash);
}

uint32_t definitions_add_stack(struct definitions *definitions, uint64_t hash, struct trace_frame *frames,
                               uint32_t count, bool is_cut)
{
    dl_iterate_phdr(note_module, definitions);
    for (uint32_t i = 0; i < count; i++) {
        if (frames[i].kind != TRACE_NATIVE)
            continue;
        frames[i].module = module_at(definitions, frames[i].offset);
        frames[i].offset -= frames[i].module ? definitions->modules[frames[i].module - 1].bias : 0;
    }
    pthread_mutex_lock(&definitions->lock);
    uint32_t number = definitions_find_stack(definitions, hash);
    struct trace_stack stack = {definitions->stack_count + 1, count, is_cut, 0};
    if (number == 0 && definitions->stack_count < DEFINITIONS_STACK_SLOTS / 2 &&
        add_record(definitions, TRACE_STACK, &stack, sizeof stack, frames, count * sizeof *frames)) {
        number = ++definitions->stack_count;
        fill_slot(definitions->stacks, DEFINITIONS_STACK_SLOTS, hash, number);
    }
    pthread_mutex_unlock(&definitions->lock);
    return number;
}

const void *definitions_since(const struct definitions *definitions, uint64_t from, size_t *bytes)
{
    *bytes = (size_t)(atomic_load_explicit(&definitions->log_bytes, memory_order_acquire) - from);
    return definitions->log + from;
}
