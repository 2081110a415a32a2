#include "tests/device/ranges.h"
#include <stdlib.h>
#include <sys/mman.h>

struct run {
    uint64_t first, count;
    struct run *previous, *next;
};

struct ranges {
    uint64_t count, free_count;
    uint64_t occupied; /* bit c: list c is not empty */
    struct run *lists[64];
    struct run **ends;
    struct run *spare; /* unused run structs, linked by next */
};

static unsigned list_of(uint64_t count)
{
    return 63u - (unsigned)__builtin_clzll(count);
}

static struct run *run_new(struct ranges *ranges)
{
    struct run *run = ranges->spare;
    if (run != NULL)
        ranges->spare = run->next;
    else
        run = malloc(sizeof *run);
    if (run == NULL)
        abort();
    return run;
}

static void link_run(struct ranges *ranges, uint64_t first, uint64_t count)
{
    unsigned list = list_of(count);
    struct run *run = run_new(ranges);
    *run = (struct run){.first = first, .count = count, .next = ranges->lists[list]};
    if (run->next != NULL)
        run->next->previous = run;
    ranges->lists[list] = run;
    ranges->occupied |= 1ull << list;
    ranges->ends[first] = ranges->ends[first + count - 1] = run;
}

static void unlink_run(struct ranges *ranges, struct run *run)
{
    unsigned list = list_of(run->count);
    if (run->previous != NULL)
        run->previous->next = run->next;
    else
        ranges->lists[list] = run->next;
    if (run->next != NULL)
        run->next->previous = run->previous;
    if (ranges->lists[list] == NULL)
        ranges->occupied &= ~(1ull << list);
    ranges->ends[run->first] = ranges->ends[run->first + run->count - 1] = NULL;
    run->next = ranges->spare;
    ranges->spare = run;
}

struct ranges *ranges_create(uint64_t count)
{
    struct ranges *ranges = calloc(1, sizeof *ranges);
    if (ranges == NULL)
        return NULL;
    ranges->count = ranges->free_count = count;
    void *ends = mmap(NULL, count * sizeof *ranges->ends, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ends == MAP_FAILED) {
        free(ranges);
        return NULL;
    }
    ranges->ends = ends;
    link_run(ranges, 0, count);
    return ranges;
}

void ranges_destroy(struct ranges *ranges)
{
    for (unsigned list = 0; list < 64; list++)
        while (ranges->lists[list] != NULL)
            unlink_run(ranges, ranges->lists[list]);
    while (ranges->spare != NULL) {
        struct run *run = ranges->spare;
        ranges->spare = run->next;
        free(run);
    }
    munmap(ranges->ends, ranges->count * sizeof *ranges->ends);
    free(ranges);
}

static uint64_t aligned_first(const struct run *run, uint64_t align)
{
    return (run->first + align - 1) & ~(align - 1);
}

static bool fits(const struct run *run, uint64_t count, uint64_t align)
{
    uint64_t skipped = aligned_first(run, align) - run->first;
    return run->count >= skipped && run->count - skipped >= count;
}

static void cut(struct ranges *ranges, struct run *run, uint64_t first, uint64_t count)
{
    uint64_t begin = run->first, end = run->first + run->count;
    unlink_run(ranges, run);
    if (first > begin)
        link_run(ranges, begin, first - begin);
    if (end > first + count)
        link_run(ranges, first + count, end - first - count);
    ranges->free_count -= count;
}

bool ranges_take(struct ranges *ranges, uint64_t count, uint64_t align, uint64_t *first)
{
    if (count == 0 || count > ranges->free_count)
        return false;
    uint64_t candidates = ranges->occupied & (~0ull << list_of(count));
    for (; candidates != 0; candidates &= candidates - 1) {
        struct run *run = ranges->lists[__builtin_ctzll(candidates)];
        while (run != NULL && !fits(run, count, align))
            run = run->next;
        if (run == NULL)
            continue;
        *first = aligned_first(run, align);
        cut(ranges, run, *first, count);
        return true;
    }
    return false;
}

uint64_t ranges_take_some(struct ranges *ranges, uint64_t limit, uint64_t *first)
{
    if (ranges->occupied == 0 || limit == 0)
        return 0;
    if (ranges_take(ranges, limit, 1, first))
        return limit;
    struct run *run = ranges->lists[list_of(ranges->occupied)];
    uint64_t count = run->count < limit ? run->count : limit;
    *first = run->first;
    cut(ranges, run, run->first, count);
    return count;
}

void ranges_give(struct ranges *ranges, uint64_t first, uint64_t count)
{
    ranges->free_count += count;
    struct run *before = first > 0 ? ranges->ends[first - 1] : NULL;
    struct run *after = first + count < ranges->count ? ranges->ends[first + count] : NULL;
    uint64_t end = first + count;
    if (before != NULL) {
        first = before->first;
        unlink_run(ranges, before);
    }
    if (after != NULL) {
        end = after->first + after->count;
        unlink_run(ranges, after);
    }
    link_run(ranges, first, end - first);
}

uint64_t ranges_free_count(const struct ranges *ranges)
{
    return ranges->free_count;
}

bool ranges_are_valid(const struct ranges *ranges)
{
    uint64_t total = 0;
    for (unsigned list = 0; list < 64; list++) {
        if ((ranges->lists[list] != NULL) != ((ranges->occupied >> list & 1) != 0))
            return false;
        for (const struct run *run = ranges->lists[list]; run != NULL; run = run->next) {
            uint64_t last = run->first + run->count - 1;
            if (run->count == 0 || list_of(run->count) != list || last >= ranges->count)
                return false;
            if (ranges->ends[run->first] != run || ranges->ends[last] != run)
                return false;
            if (run->first > 0 && ranges->ends[run->first - 1] != NULL)
                return false;
            if (last + 1 < ranges->count && ranges->ends[last + 1] != NULL)
                return false;
            total += run->count;
        }
    }
    return total == ranges->free_count;
}
