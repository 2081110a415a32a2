#include "shim/outside.h"

#include "shim/say.h"
#include "shim/store.h"

#include <pthread.h>

#include "shim/inside.h"

#define RECORDS_MAX (1u << 20) /* address space only; a power of two */

struct record {
    uint64_t key, bytes;
    uint32_t kind; /* enum outside_kind + 1; 0: free, never used; GONE: free, used before */
    uint32_t references;
};

#define GONE UINT32_MAX

static struct {
    pthread_mutex_t lock; /* all of the rest */
    struct record *records;
    uint32_t used; /* not free, GONE ones included */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t bucket_of(enum outside_kind kind, uint64_t key)
{
    return (size_t)((key ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15u >> 40) % RECORDS_MAX;
}

static struct record *find_locked(enum outside_kind kind, uint64_t key)
{
    if (state.records == NULL)
        return NULL;
    for (size_t bucket = bucket_of(kind, key); state.records[bucket].kind; bucket = (bucket + 1) % RECORDS_MAX) {
        struct record *record = &state.records[bucket];
        if (record->kind == (uint32_t)kind + 1 && record->key == key)
            return record;
    }
    return NULL;
}

static struct record *make_locked(enum outside_kind kind, uint64_t key)
{
    if (state.records == NULL)
        state.records = store_reserve(RECORDS_MAX * sizeof *state.records, "memory taken past the arena");
    if (state.records == NULL)
        return NULL;
    size_t bucket = bucket_of(kind, key);
    while (state.records[bucket].kind && state.records[bucket].kind != GONE)
        bucket = (bucket + 1) % RECORDS_MAX;
    struct record *record = &state.records[bucket];
    if (record->kind == 0 && state.used >= RECORDS_MAX / 4 * 3)
        return NULL;
    state.used += record->kind == 0;
    *record = (struct record){.key = key, .kind = (uint32_t)kind + 1};
    return record;
}

static uint64_t remove_locked(struct record *record)
{
    uint64_t bytes = record->bytes;
    record->kind = GONE;
    return bytes;
}

bool outside_add(enum outside_kind kind, uint64_t key, uint64_t bytes)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    if (record == NULL)
        record = make_locked(kind, key);
    if (record) {
        record->bytes += bytes;
        record->references++;
    }
    pthread_mutex_unlock(&state.lock);
    if (record == NULL)
        say(SAY_ERROR, "too many allocations past the arena to keep count of");
    return record != NULL;
}

uint64_t outside_take(enum outside_kind kind, uint64_t key)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    uint64_t bytes = record ? remove_locked(record) : 0;
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

bool outside_retain(enum outside_kind kind, uint64_t key)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    if (record)
        record->references++;
    pthread_mutex_unlock(&state.lock);
    return record != NULL;
}

bool outside_release(enum outside_kind kind, uint64_t key, uint64_t *bytes)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    *bytes = record && --record->references == 0 ? remove_locked(record) : 0;
    pthread_mutex_unlock(&state.lock);
    return record != NULL;
}

bool outside_find(enum outside_kind kind, uint64_t key, uint64_t *bytes)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    *bytes = record ? record->bytes : 0;
    pthread_mutex_unlock(&state.lock);
    return record != NULL;
}

uint64_t outside_set(enum outside_kind kind, uint64_t key, uint64_t bytes)
{
    pthread_mutex_lock(&state.lock);
    struct record *record = find_locked(kind, key);
    if (record == NULL)
        record = make_locked(kind, key);
    uint64_t before = record ? record->bytes : 0;
    if (record)
        record->bytes = bytes;
    pthread_mutex_unlock(&state.lock);
    return before;
}
