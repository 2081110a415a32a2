#include "tests/device/ptx_schedule.h"

#include <cuda.h>
#include <string.h>

#define WARP     32u
#define BARRIERS (PTX_CLUSTER_BARRIER + 1)

struct schedule {
    const struct ptx_kernel *kernel;
    struct ptx_block *block;
    uint64_t seed;
    uint32_t arrived[BARRIERS]; /* threads that arrived without waiting */
};

static uint64_t draw(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t warp_end(const struct ptx_block *block, uint32_t first)
{
    return smaller(first + WARP, block->threads);
}

static void order_warps(struct schedule *s, uint8_t order[WARP], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = (uint8_t)i;
    if (!s->seed)
        return;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = (uint32_t)(draw(&s->seed) % i);
        uint8_t kept = order[i - 1];
        order[i - 1] = order[k];
        order[k] = kept;
    }
}

/* Threads [first, end) are ready at the same place. */
static void run_threads(struct schedule *s, uint32_t first, uint32_t end, uint32_t entry)
{
    ptx_region *region = s->kernel->regions[entry];
    uint64_t choice = s->seed ? draw(&s->seed) % 3 : 0;
    if (choice == 0) {
        region(s->block, first, end, entry);
    } else if (choice == 1) {
        for (uint32_t t = end; t-- > first;)
            region(s->block, t, t + 1, entry);
    } else {
        uint32_t middle = first + (uint32_t)(draw(&s->seed) % (end - first));
        if (middle > first)
            region(s->block, middle, end, entry);
        region(s->block, first, middle > first ? middle : end, entry);
    }
}

/* ---- barriers ---- */

static const struct ptx_sync *sync_of(const struct schedule *s, uint32_t at)
{
    return &s->kernel->syncs[at & ~PTX_WAITS];
}

static bool is_waiting(uint32_t at)
{
    return (at & PTX_WAITS) && at != PTX_DONE;
}

static uint32_t barrier_of(const struct schedule *s, const struct ptx_sync *sync, uint32_t t)
{
    uint32_t id = sync->barrier_is_constant ? sync->barrier : s->block->exchange_b[t];
    if (id >= (sync->barrier_is_constant ? BARRIERS : PTX_CLUSTER_BARRIER))
        s->block->fault(s->block, CUDA_ERROR_LAUNCH_FAILED, "a barrier number above 15");
    return id;
}

static uint32_t count_of(const struct schedule *s, const struct ptx_sync *sync, uint32_t t)
{
    return sync->count_is_constant ? sync->count : s->block->exchange_c[t];
}

static void add_to_reduction(uint32_t reduction, uint32_t *value, uint32_t operand)
{
    if (reduction == PTX_REDUCE_AND)
        *value &= operand != 0;
    else if (reduction == PTX_REDUCE_OR)
        *value |= operand != 0;
    else
        *value += operand != 0;
}

static void put_result(const struct schedule *s, const struct ptx_sync *sync, uint32_t t, uint32_t value)
{
    uint8_t *slot = s->block->slots + (uint64_t)sync->result_slot * s->block->stride;
    if (sync->result_slot == UINT32_MAX)
        return;
    if (sync->reduction == PTX_REDUCE_COUNT)
        memcpy(slot + 4ul * t, &value, 4);
    else
        slot[t] = (uint8_t)value;
}

static bool waits_at_barrier(const struct schedule *s, uint32_t t, uint32_t id)
{
    uint32_t at = s->block->at[t];
    return is_waiting(at) && sync_of(s, at)->kind == PTX_SYNC_BARRIER && barrier_of(s, sync_of(s, at), t) == id;
}

static void release_barrier(struct schedule *s, uint32_t id, uint32_t reduction)
{
    uint32_t value = reduction == PTX_REDUCE_AND;
    const uint32_t *operands = (const uint32_t *)s->block->exchange_a;
    for (uint32_t t = 0; reduction && t < s->block->threads; t++)
        if (waits_at_barrier(s, t, id))
            add_to_reduction(reduction, &value, operands[t]);
    for (uint32_t t = 0; t < s->block->threads; t++) {
        if (!waits_at_barrier(s, t, id))
            continue;
        const struct ptx_sync *sync = sync_of(s, s->block->at[t]);
        if (sync->reduction)
            put_result(s, sync, t, value);
        s->block->at[t] = (uint16_t)((s->block->at[t] & ~PTX_WAITS) + 1);
    }
    s->arrived[id] = 0;
}

struct barrier_state {
    uint32_t waiting, count, reduction, last_warp;
};

/* True if any barrier opened. */
static bool release_barriers(struct schedule *s)
{
    struct barrier_state barriers[BARRIERS];
    memset(barriers, 0, sizeof barriers);
    uint32_t alive = 0;
    for (uint32_t t = 0; t < s->block->threads; t++) {
        uint32_t at = s->block->at[t];
        alive += at != PTX_DONE;
        if (!is_waiting(at) || sync_of(s, at)->kind != PTX_SYNC_BARRIER)
            continue;
        const struct ptx_sync *sync = sync_of(s, at);
        struct barrier_state *barrier = &barriers[barrier_of(s, sync, t)];
        barrier->waiting++;
        barrier->count = count_of(s, sync, t);
        barrier->reduction = sync->reduction;
        barrier->last_warp |= t >= s->block->stride - WARP;
    }
    uint32_t phantoms = s->block->stride - s->block->threads;
    bool opened = false;
    for (uint32_t id = 0; id < BARRIERS; id++) {
        const struct barrier_state *barrier = &barriers[id];
        if (!barrier->waiting)
            continue;
        uint32_t present = barrier->waiting + s->arrived[id] + (barrier->last_warp ? phantoms : 0);
        if (barrier->count ? present >= barrier->count : barrier->waiting == alive) {
            release_barrier(s, id, barrier->reduction);
            opened = true;
        }
    }
    return opened;
}

/* ---- warp operations ---- */

static uint32_t lanes_where(const struct ptx_block *block, uint32_t first, uint32_t at)
{
    uint32_t lanes = 0;
    for (uint32_t t = first; t < warp_end(block, first); t++)
        lanes |= (uint32_t)(block->at[t] == at) << (t - first);
    return lanes;
}

static uint32_t mask_of(const struct schedule *s, const struct ptx_sync *sync, uint32_t t)
{
    return sync->mask_is_constant ? sync->mask : s->block->exchange_mask[t];
}

static void finish_warp_operation(struct schedule *s, uint32_t first, uint32_t lanes, uint32_t at)
{
    const struct ptx_sync *sync = sync_of(s, at);
    if (sync->run)
        sync->run(s->block, first, lanes);
    for (uint32_t lane = 0; lane < WARP; lane++)
        if (lanes >> lane & 1)
            s->block->at[first + lane] = (uint16_t)((at & ~PTX_WAITS) + 1);
}

/* The lanes that wait like thread t, if all that it waits for are there; else 0. */
static uint32_t complete_lanes(const struct schedule *s, uint32_t first, uint32_t t)
{
    const struct ptx_block *block = s->block;
    uint32_t at = block->at[t];
    uint32_t mask = mask_of(s, sync_of(s, at), t);
    uint32_t lanes = 0, absent = lanes_where(block, first, PTX_DONE);
    if (block->threads - first < WARP)
        absent |= ~0u << (block->threads - first);
    for (uint32_t other = first; other < warp_end(block, first); other++)
        if (block->at[other] == at && (mask >> (other - first) & 1) && mask_of(s, sync_of(s, at), other) == mask)
            lanes |= 1u << (other - first);
    if (!(mask >> (t - first) & 1))
        block->fault(s->block, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a warp operation whose mask leaves out its own lane");
    return (mask & ~(lanes | absent)) ? 0 : lanes;
}

static bool run_warp_operations(struct schedule *s, uint32_t first, uint32_t kind)
{
    bool ran = false;
    for (uint32_t t = first; t < warp_end(s->block, first); t++) {
        uint32_t at = s->block->at[t];
        if (!is_waiting(at) || sync_of(s, at)->kind != kind)
            continue;
        uint32_t lanes = kind == PTX_SYNC_WARP ? complete_lanes(s, first, t) : lanes_where(s->block, first, at);
        if (!lanes)
            continue;
        finish_warp_operation(s, first, lanes, at);
        ran = true;
    }
    return ran;
}

static bool run_arrivals(struct schedule *s, uint32_t first)
{
    bool ran = false;
    for (uint32_t t = first; t < warp_end(s->block, first); t++) {
        uint32_t at = s->block->at[t];
        if (!is_waiting(at) || sync_of(s, at)->kind != PTX_SYNC_ARRIVE)
            continue;
        s->arrived[barrier_of(s, sync_of(s, at), t)]++;
        s->block->at[t] = (uint16_t)((at & ~PTX_WAITS) + 1);
        ran = true;
    }
    return ran;
}

static bool run_ready(struct schedule *s, uint32_t first)
{
    bool ran = false;
    uint32_t end = warp_end(s->block, first);
    for (uint32_t t = first; t < end;) {
        uint32_t at = s->block->at[t], run_end = t + 1;
        if (at & PTX_WAITS) {
            t++;
            continue;
        }
        while (run_end < end && s->block->at[run_end] == at)
            run_end++;
        run_threads(s, t, run_end, at);
        ran = true;
        t = run_end;
    }
    return ran;
}

/* Until every lane is done or waits at a barrier. */
static bool run_warp(struct schedule *s, uint32_t first)
{
    bool moved = run_warp_operations(s, first, PTX_SYNC_POLL);
    for (;;) {
        bool ran = run_ready(s, first);
        ran |= run_arrivals(s, first);
        ran |= run_warp_operations(s, first, PTX_SYNC_WARP);
        if (!ran)
            ran = run_warp_operations(s, first, PTX_SYNC_FREE);
        if (!ran)
            return moved;
        moved = true;
    }
}

static bool all_are(const struct ptx_block *block, uint32_t at)
{
    /* All are like the first if each is like the one before it. */
    return block->at[0] == at && memcmp(block->at, block->at + 1, (block->threads - 1) * sizeof *block->at) == 0;
}

/* Warp by warp, until all threads are done, or are ready at the same place again: then *entry is that place, and the
 * answer is false. With a seed they stay apart. */
static bool run_apart(struct schedule *s, uint32_t *entry)
{
    uint8_t order[WARP];
    uint32_t warps = s->block->stride / WARP;
    while (!all_are(s->block, PTX_DONE)) {
        bool moved = false;
        order_warps(s, order, warps);
        for (uint32_t i = 0; i < warps; i++)
            moved |= run_warp(s, order[i] * WARP);
        moved |= release_barriers(s);
        if (!moved)
            s->block->fault(s->block, CUDA_ERROR_LAUNCH_TIMEOUT, "all threads wait for each other");
        *entry = s->block->at[0];
        if (!s->seed && !(*entry & PTX_WAITS) && all_are(s->block, *entry))
            return false;
    }
    return true;
}

/* ---- all threads in step ---- */

static bool finish_together(struct schedule *s, const struct ptx_sync *sync)
{
    const struct ptx_block *block = s->block;
    if (sync->kind == PTX_SYNC_BARRIER && sync->barrier_is_constant && sync->count_is_constant)
        return (!sync->count || sync->count == block->stride) && !sync->reduction;
    if (sync->kind != PTX_SYNC_WARP && sync->kind != PTX_SYNC_FREE && sync->kind != PTX_SYNC_POLL)
        return false;
    for (uint32_t t = 0; sync->kind == PTX_SYNC_WARP && t < block->threads; t++)
        if (mask_of(s, sync, t) != ~0u)
            return false;
    for (uint32_t first = 0; sync->run && first < block->threads; first += WARP) {
        uint32_t count = warp_end(block, first) - first;
        sync->run(s->block, first, count == WARP ? ~0u : (1u << count) - 1);
    }
    return true;
}

/* As long as all threads go the same way they are run as one loop per region. False once they part. */
static bool run_together(struct schedule *s, uint32_t entry)
{
    for (;;) {
        s->kernel->regions[entry](s->block, 0, s->block->threads, entry);
        uint32_t at = s->block->at[0];
        if (!all_are(s->block, at))
            return false;
        if (at == PTX_DONE)
            return true;
        if (!finish_together(s, sync_of(s, at)))
            return false;
        entry = (at & ~PTX_WAITS) + 1;
    }
}

static void run_without_syncs(struct schedule *s)
{
    uint8_t order[WARP];
    if (!s->seed) {
        s->kernel->regions[0](s->block, 0, s->block->threads, 0);
        return;
    }
    order_warps(s, order, s->block->stride / WARP);
    for (uint32_t i = 0; i < s->block->stride / WARP; i++)
        run_threads(s, order[i] * WARP, warp_end(s->block, order[i] * WARP), 0);
}

void ptx_schedule_block(const struct ptx_kernel *kernel, struct ptx_block *block, uint64_t seed)
{
    struct schedule s = {.kernel = kernel, .block = block, .seed = seed};
    if (!kernel->sync_count) {
        run_without_syncs(&s);
        return;
    }
    memset(block->at, 0, block->threads * sizeof *block->at);
    uint32_t entry = 0;
    while (seed || !run_together(&s, entry))
        if (run_apart(&s, &entry))
            return;
}
