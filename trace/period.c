#include "trace/period.h"
#include <string.h>
#include <sys/mman.h>

#define GRAM      8 /* operations that make a key */
#define TRIES     8 /* earlier places of a key that are looked at */
#define HASH_BASE 0x9e3779b97f4a7c15u
#define NONE      UINT32_MAX

struct entry {
    uint64_t signature, live, demand;
    uint64_t hash;         /* of all signatures up to and including this one */
    uint32_t older, newer; /* neighbours with the same key, or NONE */
};

/* A key's list of entries, oldest to newest. `eligible` is the newest one that lies before `need` as far as it has been
 * looked at: need only grows, so it only moves forward, and every link is walked once. */
struct slot {
    uint64_t key;
    uint32_t newest, eligible; /* NONE, NONE: free slot */
};

struct period {
    struct entry *entries; /* most_entries of them are mapped; index = position - base */
    uint32_t count, most_entries;
    uint32_t
        linked; /* the first so many are in their keys' lists: while a known period goes on nothing is looked for */
    uint64_t base;
    struct slot *slots;
    uint32_t slot_count, used_count;
    bool has_failed;

    uint64_t peak, near_peak;           /* highest demand; last position with >= 0.9 of it */
    uint64_t greatest_fall, fall_start; /* last fall of >= half the greatest: where it began */
    uint64_t crest, crest_at, trough;   /* of the fall in progress */
    bool has_fall;

    struct period_answer answer;
    uint64_t known_length, known_peak; /* of the last answer, also when it holds no longer */
    uint64_t long_after;               /* until this position nothing much longer than it is looked at */
    uint64_t rejected_length, rejected_until;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static void *map(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static struct slot *map_slots(uint32_t count)
{
    struct slot *slots = map(count * sizeof *slots);
    for (uint32_t i = 0; slots && i < count; i++)
        slots[i] = (struct slot){.newest = NONE, .eligible = NONE};
    return slots;
}

struct period *period_start(uint32_t most_entries)
{
    struct period *period = map(sizeof *period);
    if (!period)
        return NULL;
    *period = (struct period){.most_entries = most_entries ? most_entries : PERIOD_MOST_ENTRIES, .slot_count = 1024};
    if (period->most_entries < 4 * GRAM)
        period->most_entries = 4 * GRAM;
    period->entries = map(period->most_entries * sizeof *period->entries);
    period->slots = map_slots(period->slot_count);
    if (period->entries && period->slots)
        return period;
    period_stop(period);
    return NULL;
}

void period_stop(struct period *period)
{
    if (!period)
        return;
    if (period->entries)
        munmap(period->entries, period->most_entries * sizeof *period->entries);
    if (period->slots)
        munmap(period->slots, period->slot_count * sizeof *period->slots);
    munmap(period, sizeof *period);
}

static struct slot *find_slot(struct slot *slots, uint32_t slot_count, uint64_t key)
{
    for (uint64_t at = key;; at++) {
        struct slot *slot = &slots[at & (slot_count - 1)];
        if (slot->newest == NONE || slot->key == key)
            return slot;
    }
}

static bool grow_slots(struct period *period)
{
    uint32_t wanted = period->slot_count * 2;
    struct slot *slots = map_slots(wanted);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < period->slot_count; i++)
        if (period->slots[i].newest != NONE)
            *find_slot(slots, wanted, period->slots[i].key) = period->slots[i];
    munmap(period->slots, period->slot_count * sizeof *period->slots);
    period->slots = slots;
    period->slot_count = wanted;
    return true;
}

/* Hash of the signatures of entries (from, to], from < to; from == NONE: from the first. */
static uint64_t hash_between(const struct period *period, uint32_t from, uint32_t to)
{
    uint64_t before = from == NONE ? 0 : period->entries[from].hash;
    uint32_t length = from == NONE ? to + 1 : to - from;
    return period->entries[to].hash - before * power(HASH_BASE, length);
}

static uint64_t key_at(const struct period *period, uint32_t index)
{
    uint64_t before = index == GRAM - 1 ? 0 : period->entries[index - GRAM].hash;
    uint64_t gram = period->entries[index].hash - before * power(HASH_BASE, GRAM);
    return mix(gram ^ mix(period->entries[index].live));
}

/* Links entry `index` as the newest of its key. NULL: too near to the beginning, or has_failed. */
static struct slot *link_entry(struct period *period, uint32_t index)
{
    struct entry *entry = &period->entries[index];
    entry->older = entry->newer = NONE;
    if (index < GRAM - 1)
        return NULL;
    if ((period->used_count + 1) * 2 > period->slot_count && !grow_slots(period)) {
        period->has_failed = true;
        return NULL;
    }
    uint64_t key = key_at(period, index);
    struct slot *slot = find_slot(period->slots, period->slot_count, key);
    if (slot->newest == NONE) {
        *slot = (struct slot){.key = key, .newest = index, .eligible = NONE};
        period->used_count++;
        return slot;
    }
    entry->older = slot->newest;
    period->entries[slot->newest].newer = index;
    slot->newest = index;
    if (slot->eligible == NONE) { /* the oldest of the list is where looking starts */
        uint32_t oldest = entry->older;
        slot->eligible = oldest;
    }
    return slot;
}

/* Links all entries that are not yet. Returns the slot of the last. */
static struct slot *link_entries(struct period *period)
{
    struct slot *slot = NULL;
    while (period->linked < period->count && !period->has_failed)
        slot = link_entry(period, period->linked++);
    return slot;
}

/* Forgets the older half. Keys are linked anew: constant time per operation over the time it took to fill it. */
static void forget_half(struct period *period)
{
    uint32_t dropped = period->count / 2, kept = period->count - dropped;
    memmove(period->entries, period->entries + dropped, kept * sizeof *period->entries);
    period->base += dropped;
    for (uint32_t i = 0; i < period->slot_count; i++)
        period->slots[i] = (struct slot){.newest = NONE, .eligible = NONE};
    period->used_count = period->linked = 0;
    period->count = kept;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < kept; i++)
        period->entries[i].hash = hash = hash * HASH_BASE + mix(period->entries[i].signature);
    if (period->answer.length >= kept) /* what it repeats is gone */
        period->answer = (struct period_answer){0};
}

static void note_demand(struct period *period, uint64_t demand, uint64_t at)
{
    if (demand > period->peak)
        period->peak = demand;
    if (demand >= period->peak - period->peak / 10)
        period->near_peak = at;
    if (demand >= period->crest) {
        period->crest = period->trough = demand;
        period->crest_at = at;
        return;
    }
    if (demand < period->trough)
        period->trough = demand;
    uint64_t fall = period->crest - period->trough;
    if (fall > period->greatest_fall)
        period->greatest_fall = fall;
    if (fall < period->greatest_fall - period->greatest_fall / 2)
        return;
    period->fall_start = period->crest_at;
    period->has_fall = true;
    if (demand - period->trough >= fall / 4 + 1) { /* rising again: the next fall starts from its own crest */
        period->crest = period->trough = demand;
        period->crest_at = at;
    }
}

static bool is_flat(const struct period *period)
{
    return !period->has_fall || period->greatest_fall < period->peak / 64;
}

/* The window's beginning must lie before this position. */
static uint64_t needed(const struct period *period)
{
    if (is_flat(period) || period->near_peak < period->fall_start)
        return period->near_peak;
    return period->fall_start;
}

static bool is_repeated(const struct period *period, uint32_t now, uint32_t length, uint32_t span)
{
    const struct entry *entries = period->entries;
    if (now + 1 < span + length)
        return false;
    uint32_t from = now - span, earlier = now - length;
    bool starts_history = now + 1 == span + length;
    if (hash_between(period, from, now) != hash_between(period, starts_history ? NONE : from - length, earlier))
        return false;
    for (uint32_t i = 0; i < span; i++)
        if (entries[now - i].signature != entries[earlier - i].signature)
            return false;
    return true;
}

/* What was found at lower demand (a validation run before training) does not count. */
static bool is_much_longer(const struct period *period, uint32_t length)
{
    bool is_known = period->known_length && period->known_peak >= period->peak - period->peak / 10;
    return is_known && length > period->known_length + period->known_length / 2;
}

/* True if most of (now - length, now] repeats what was known_length operations before. */
static bool repeats_known(const struct period *period, uint32_t now, uint32_t length)
{
    uint32_t repeated = 0, known = (uint32_t)period->known_length;
    for (uint32_t i = 0; i < length && known + i <= now; i++)
        repeated += period->entries[now - i].signature == period->entries[now - i - known].signature;
    return repeated > length / 2;
}

static bool is_period(const struct period *period, uint32_t now, uint32_t then)
{
    const struct entry *entries = period->entries;
    uint32_t length = now - then;
    if (is_much_longer(period, length) && period->base + now < period->long_after)
        return false;
    if (then < length || entries[then].live != entries[now].live || entries[then - length].live != entries[now].live)
        return false;
    if (length == period->rejected_length && period->base + now < period->rejected_until)
        return false;
    uint32_t span = is_flat(period) && length < PERIOD_FLAT_OPERATIONS ? PERIOD_FLAT_OPERATIONS : length;
    return is_repeated(period, now, length, span);
}

/* Where the iteration begins, as an index in (now - length, now]. */
static uint32_t find_boundary(const struct period *period, uint32_t now, uint32_t length)
{
    const struct entry *entries = period->entries;
    uint64_t least = UINT64_MAX, highest = 0;
    for (uint32_t i = now - length + 1; i <= now; i++)
        if (entries[i].demand < least)
            least = entries[i].demand;
    /* Walk two windows, so that a rise which began in the first is seen to its end in the second. */
    uint32_t best = now, start = NONE;
    uint64_t rise = 0;
    for (uint32_t i = now - 2 * length + 1; i <= now; i++) {
        uint64_t demand = entries[i].demand;
        bool was_least = i > 0 && entries[i - 1].demand <= least;
        if (demand > least && was_least) {
            start = i;
            rise = 0;
        }
        if (start != NONE && demand > rise)
            rise = demand;
        if (start != NONE && rise > highest) {
            highest = rise;
            best = start;
        }
        if (demand <= least)
            start = NONE;
    }
    return best + length <= now ? best + length : best;
}

static bool search(struct period *period, struct slot *slot, uint32_t now)
{
    uint64_t need = needed(period);
    if (slot->eligible == NONE || period->base + slot->eligible >= need)
        return false;
    for (uint32_t next; (next = period->entries[slot->eligible].newer) != NONE && period->base + next < need;)
        slot->eligible = next;
    uint32_t then = slot->eligible;
    for (int tries = 0; tries < TRIES && then != NONE; tries++, then = period->entries[then].older) {
        if (then == now || !is_period(period, now, then))
            continue;
        uint32_t length = now - then;
        if (is_much_longer(period, length) && repeats_known(period, now, length)) {
            period->long_after = period->base + now + 2 * period->known_length;
            continue;
        }
        period->known_length = length;
        period->known_peak = period->peak;
        period->answer = (struct period_answer){.length = length,
                                                .boundary = period->base + find_boundary(period, now, length),
                                                .found_at = period->base + now};
        period->rejected_length = 0;
        return true;
    }
    return false;
}

/* True if the known period goes on with the operation just entered. */
static bool goes_on(struct period *period, uint32_t now)
{
    struct period_answer *answer = &period->answer;
    if (period->entries[now].signature != period->entries[now - answer->length].signature) {
        *answer = (struct period_answer){0};
        return false;
    }
    if (period->base + now == answer->boundary + answer->length)
        answer->boundary += answer->length;
    return true;
}

bool period_feed(struct period *period, const struct period_operation *operation)
{
    if (period->has_failed)
        return false;
    bool had_answer = period->answer.length != 0;
    if (period->count == period->most_entries)
        forget_half(period);
    uint32_t now = period->count++;
    uint64_t before = now ? period->entries[now - 1].hash : 0;
    period->entries[now] = (struct entry){.signature = operation->signature,
                                          .live = operation->live,
                                          .demand = operation->demand,
                                          .hash = before * HASH_BASE + mix(operation->signature)};
    note_demand(period, operation->demand, period->base + now);
    if (period->answer.length && goes_on(period, now))
        return false;
    struct slot *slot = link_entries(period);
    bool is_found = slot && search(period, slot, now);
    return is_found || had_answer;
}

struct period_answer period_now(const struct period *period)
{
    return period->answer;
}

void period_reject(struct period *period, uint64_t patience)
{
    period->rejected_length = period->answer.length;
    period->rejected_until = period->base + period->count + patience;
    period->answer = (struct period_answer){0};
}

uint64_t period_position(const struct period *period)
{
    return period->base + period->count;
}
