#include "shim/driver.h"

#include "shim/linker.h"
#include "shim/say.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define DRIVER_NAME     "libcuda.so.1"
#define ADDRESS_BUCKETS 4096 /* a power of two, more than four times the addresses that are learned */

/* driver_stubs.c has one per row; each loads the driver, then jumps to what its slot holds. */
#define FN(name, since, verb) __attribute__((visibility("hidden"))) extern __typeof__(name) stub_##name;
#include "shim/driver.def"
#undef FN

struct driver driver = {
#define FN(name, since, verb) .name = stub_##name,
#include "shim/driver.def"
#undef FN
};

struct row {
    const char *name;
    int since;
};

static const struct row rows[] = {
#define FN(name, since, verb) {#name, since},
#include "shim/driver.def"
#undef FN
};

_Static_assert(sizeof driver == DRIVER_COUNT * sizeof(void *), "the table is an array of pointers");

struct known_address {
    const void *address;
    int index;
};

static struct {
    pthread_mutex_t loading; /* held while the driver is loaded */
    _Atomic bool is_loaded, is_fork_safe;
    bool is_absent_said; /* under `loading` */
    void *library;
    struct known_address known[ADDRESS_BUCKETS]; /* written before is_loaded, constant after */
} state = {.loading = PTHREAD_MUTEX_INITIALIZER};

static __thread bool is_loading_here __attribute__((tls_model("initial-exec")));

static CUresult answer_no_driver(void)
{
    return CUDA_ERROR_NO_DEVICE;
}

static CUresult answer_too_early(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult answer_not_supported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void **slots(void)
{
    return (void **)&driver;
}

void *driver_dlopen(const char *name, int flags)
{
    return dlopen(name, flags);
}

void *driver_dlsym(void *handle, const char *name)
{
    return linker_functions()->dlsym(handle, name);
}

bool driver_is_present(void)
{
    if (atomic_load_explicit(&state.is_loaded, memory_order_acquire))
        return true;
    void *library = dlopen(DRIVER_NAME, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return false;
    dlclose(library);
    return true;
}

static size_t bucket_of(const void *address)
{
    return (size_t)(((uintptr_t)address >> 2) * 0x9e3779b97f4a7c15u >> 40) % ADDRESS_BUCKETS;
}

static void learn_address(const void *address, int index)
{
    size_t bucket = bucket_of(address);
    for (; state.known[bucket].address; bucket = (bucket + 1) % ADDRESS_BUCKETS)
        if (state.known[bucket].address == address)
            return;
    state.known[bucket] = (struct known_address){address, index};
}

int driver_find_address(const void *address)
{
    if (address == NULL || !atomic_load_explicit(&state.is_loaded, memory_order_acquire))
        return -1;
    for (size_t bucket = bucket_of(address); state.known[bucket].address; bucket = (bucket + 1) % ADDRESS_BUCKETS)
        if (state.known[bucket].address == address)
            return state.known[bucket].index;
    return -1;
}

static bool ends_in(const char *name, size_t length, const char *suffix)
{
    size_t count = strlen(suffix);
    return length > count && memcmp(name + length - count, suffix, count) == 0;
}

/* The name that cuGetProcAddress knows the function by, and whether it is the per-thread form. */
static bool split_name(const char *name, char *base, size_t bytes)
{
    size_t length = strlen(name);
    bool is_per_thread = ends_in(name, length, "_ptsz") || ends_in(name, length, "_ptds");
    length -= is_per_thread ? strlen("_ptsz") : 0;
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v')
        length -= strlen("_v2");
    CHECK(length < bytes);
    memcpy(base, name, length);
    base[length] = 0;
    return is_per_thread;
}

/* A driver may hand out other addresses than it exports. */
static void learn_handed_out(__typeof__(cuGetProcAddress_v2) *get)
{
    for (int i = 0; i < DRIVER_COUNT; i++) {
        char base[64];
        bool is_per_thread = split_name(rows[i].name, base, sizeof base);
        void *address = NULL;
        cuuint64_t flags =
            is_per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
        if (get(base, &address, rows[i].since, flags, NULL) == CUDA_SUCCESS && address)
            learn_address(address, i);
    }
}

static void fill_slots(void *library)
{
    void *found[DRIVER_COUNT];
    for (int i = 0; i < DRIVER_COUNT; i++) {
        found[i] = driver_dlsym(library, rows[i].name);
        if (found[i])
            learn_address(found[i], i);
    }
    void *get = found[DRIVER_cuGetProcAddress_v2];
    if (get)
        learn_handed_out((__typeof__(cuGetProcAddress_v2) *)get);
    for (int i = 0; i < DRIVER_COUNT; i++)
        __atomic_store_n(&slots()[i], found[i] ? found[i] : (void *)answer_not_supported, __ATOMIC_RELEASE);
}

static void load_locked(void)
{
    is_loading_here = true;
    void *library = dlopen(DRIVER_NAME, RTLD_LAZY);
    if (library) {
        state.library = library;
        fill_slots(library);
        atomic_store_explicit(&state.is_loaded, true, memory_order_release);
    } else if (!state.is_absent_said) {
        const char *why = dlerror();
        state.is_absent_said = true;
        say(SAY_ERROR, "no CUDA driver: %s", why ? why : DRIVER_NAME);
    }
    is_loading_here = false;
}

/* A child must not inherit the lock from a thread that it does not have. (The driver's own start-up may fork.) */
static void before_fork(void)
{
    if (!is_loading_here)
        pthread_mutex_lock(&state.loading);
}

static void after_fork(void)
{
    if (!is_loading_here)
        pthread_mutex_unlock(&state.loading);
}

bool driver_load(void)
{
    if (atomic_load_explicit(&state.is_loaded, memory_order_acquire))
        return true;
    if (is_loading_here)
        return false;
    if (!atomic_exchange(&state.is_fork_safe, true))
        pthread_atfork(before_fork, after_fork, after_fork);
    pthread_mutex_lock(&state.loading);
    if (!atomic_load_explicit(&state.is_loaded, memory_order_relaxed))
        load_locked();
    pthread_mutex_unlock(&state.loading);
    return atomic_load_explicit(&state.is_loaded, memory_order_acquire);
}

bool driver_has(enum driver_index index)
{
    return driver_load() && slots()[index] != (void *)answer_not_supported;
}

/* Called by the stubs: what to jump to. */
__attribute__((visibility("hidden"))) void *driver_fill(unsigned index);
void *driver_fill(unsigned index)
{
    if (driver_load())
        return __atomic_load_n(&slots()[index], __ATOMIC_ACQUIRE);
    return is_loading_here ? (void *)answer_too_early : (void *)answer_no_driver;
}
