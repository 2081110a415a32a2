#include "shim/linker.h"

#include "shim/say.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct linker_functions linker_found __attribute__((visibility("hidden")));
static _Atomic bool is_found;

/* What is needed of one loaded object. The linker has already added the load address to these pointers. */
struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash;
    uintptr_t base;
};

static bool is_linker_library(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        name = *path == '/' ? path + 1 : name;
    return linker_compare(name, "libc.so.6") == 0 || linker_compare(name, "libdl.so.2") == 0;
}

static struct symbols read_dynamic(const struct dl_phdr_info *info)
{
    struct symbols symbols = {.base = info->dlpi_addr};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols.table = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            symbols.strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_GNU_HASH)
            symbols.gnu_hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    return symbols;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* First definition of `name`, whatever its version: all versions of these two are one function. */
static void *find_symbol(const struct symbols *symbols, const char *name)
{
    if (symbols->table == NULL || symbols->strings == NULL || symbols->gnu_hash == NULL)
        return NULL;
    uint32_t bucket_count = symbols->gnu_hash[0], first = symbols->gnu_hash[1], bloom_words = symbols->gnu_hash[2];
    const uint32_t *buckets = symbols->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + bucket_count;
    uint32_t hash = gnu_hash(name);
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        const ElfW(Sym) *symbol = &symbols->table[index];
        if ((chains[index - first] | 1) == (hash | 1) &&
            linker_compare(symbols->strings + symbol->st_name, name) == 0 && symbol->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
            return (void *)(symbols->base + symbol->st_value);
        if (chains[index - first] & 1)
            return NULL;
    }
}

static int look_into(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    struct linker_functions *functions = out;
    if (!is_linker_library(info->dlpi_name))
        return 0;
    struct symbols symbols = read_dynamic(info);
    void *found = find_symbol(&symbols, "dlsym"), *versioned = find_symbol(&symbols, "dlvsym");
    if (found == NULL || versioned == NULL)
        return 0;
    functions->dlsym = (void *(*)(void *, const char *))found;
    functions->dlvsym = (void *(*)(void *, const char *, const char *))versioned;
    return 1;
}

struct between {
    const char *name;
    uintptr_t caller, ours;
    bool is_after_caller, is_found;
};

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= begin && address - begin < segment->p_memsz)
            return true;
    }
    return false;
}

/* The vDSO's table is left as offsets by the linker. */
static bool is_relocated(const struct dl_phdr_info *info, const struct symbols *symbols)
{
    return symbols->table && holds(info, (uintptr_t)symbols->table);
}

/* Objects come in the order in which the linker searches them. */
static int look_between(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    struct between *between = out;
    if (holds(info, between->ours))
        return 1;
    if (between->is_after_caller) {
        struct symbols symbols = read_dynamic(info);
        if (is_relocated(info, &symbols) && find_symbol(&symbols, between->name)) {
            between->is_found = true;
            return 1;
        }
    } else if (holds(info, between->caller)) {
        between->is_after_caller = true;
    }
    return 0;
}

bool linker_has_between(const void *caller, const void *ours, const char *name)
{
    struct between between = {.name = name, .caller = (uintptr_t)caller, .ours = (uintptr_t)ours};
    dl_iterate_phdr(look_between, &between);
    return between.is_found;
}

/* Several threads may do this at once: all find the same. */
const struct linker_functions *linker_functions(void)
{
    if (!atomic_load_explicit(&is_found, memory_order_acquire)) {
        struct linker_functions found = {0};
        dl_iterate_phdr(look_into, &found);
        CHECK(found.dlsym && found.dlvsym);
        __atomic_store_n(&linker_found.dlsym, found.dlsym, __ATOMIC_RELAXED);
        __atomic_store_n(&linker_found.dlvsym, found.dlvsym, __ATOMIC_RELAXED);
        atomic_store_explicit(&is_found, true, memory_order_release);
    }
    return &linker_found;
}
