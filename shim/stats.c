#include "shim/stats.h"

#include "shim/config.h"
#include "shim/doors.h"
#include "shim/follow.h"
#include "shim/frames.h"
#include "shim/learn.h"
#include "shim/proven.h"
#include "shim/recorder.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "shim/inside.h"

#define MAX_SNAPSHOTS (1u << 18) /* a ring: iterations of up to half as many operations get their rows */
#define MAX_TOTALS    (1u << 22)
#define MAX_ROWS      (1u << 20)

/* What changes seldom while a program fits. */
struct totals {
    uint64_t replayed, replayed_nanoseconds, out_bytes, in_bytes, audited_bytes, driver_calls, host_syncs;
    enum phase phase;
};

/* Taken before every operation, so as small and cheap as can be. */
struct snapshot {
    uint64_t position, ticks, launches;
    uint32_t totals; /* index, plus one; 0: no snapshot */
};

struct counters {
    uint64_t position, ticks, launches;
    struct totals totals;
};

struct row {
    struct counters delta;
    enum phase phase;
};

static struct {
    struct snapshot *snapshots;
    struct totals *totals;
    uint32_t totals_count;
    uint64_t first_ticks, first_nanoseconds;
    struct row *rows;
    uint32_t row_count;
    struct counters rows_end;
    enum phase phase;
    uint64_t launches, demand_peak;
    bool has_oom, is_plan_swapping, has_pressure;
    uint64_t planned_nanoseconds, planned_peak;
} state;

const char *phase_name(enum phase phase)
{
    static const char *const names[] = {"pass-through", "recording", "probation", "planned", "reactive"};
    return names[phase];
}

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* The processor's own counter where it has one that runs evenly: a third of the price of a clock. */
static uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return nanoseconds_now();
#endif
}

static double seconds_of(uint64_t ticks)
{
    uint64_t all_ticks = ticks_now() - state.first_ticks, all = nanoseconds_now() - state.first_nanoseconds;
    return all_ticks == 0 ? 0 : (double)ticks * (double)all / (double)all_ticks / 1e9;
}

void stats_open(void)
{
    state.snapshots = store_reserve(sizeof *state.snapshots * MAX_SNAPSHOTS, "iteration counters");
    state.totals = store_reserve(sizeof *state.totals * MAX_TOTALS, "iteration counters");
    state.first_ticks = ticks_now();
    state.first_nanoseconds = nanoseconds_now();
    state.rows = store_reserve(sizeof *state.rows * MAX_ROWS, "iterations");
}

void stats_launched(void)
{
    state.launches++;
}

void stats_set_phase(enum phase phase)
{
    state.phase = phase;
    tracing_phase(phase);
    state.has_pressure |= phase != PHASE_PASS_THROUGH;
}

enum phase stats_phase(void)
{
    return state.phase;
}

void stats_demand(uint64_t bytes)
{
    if (bytes > state.demand_peak) {
        state.demand_peak = bytes;
    }
}

void stats_out_of_memory(void)
{
    state.has_oom = true;
}

void stats_planned(uint64_t nanoseconds, uint64_t peak_bytes, bool is_swapping)
{
    state.planned_nanoseconds = nanoseconds;
    state.planned_peak = peak_bytes;
    state.is_plan_swapping = is_swapping;
}

static struct totals totals_now(void)
{
    struct swap_counts swaps = swap_count();
    struct follow_counts follows = follow_count();
    return (struct totals){.replayed = follows.replayed,
                           .replayed_nanoseconds = follows.replayed_nanoseconds,
                           .out_bytes = swaps.out_bytes,
                           .in_bytes = swaps.in_bytes,
                           .audited_bytes = swaps.audited_bytes,
                           .driver_calls = frames_count().driver_calls,
                           .host_syncs = streams_host_waits(),
                           .phase = state.phase};
}

static struct counters count_now(uint64_t position)
{
    return (struct counters){position, ticks_now(), state.launches, totals_now()};
}

static bool totals_equal(const struct totals *a, const struct totals *b)
{
    return a->replayed == b->replayed && a->replayed_nanoseconds == b->replayed_nanoseconds &&
           a->out_bytes == b->out_bytes && a->in_bytes == b->in_bytes && a->audited_bytes == b->audited_bytes &&
           a->driver_calls == b->driver_calls && a->host_syncs == b->host_syncs && a->phase == b->phase;
}

/* Index, plus one, of an entry that holds the totals of now: a ring, too. */
static uint32_t note_totals(void)
{
    struct totals now = totals_now();
    if (state.totals_count == 0 || !totals_equal(&now, &state.totals[(state.totals_count - 1) % MAX_TOTALS])) {
        state.totals[state.totals_count++ % MAX_TOTALS] = now;
    }
    return state.totals_count;
}

void stats_snapshot(uint64_t position)
{
    if (state.snapshots != NULL && state.totals != NULL) {
        state.snapshots[position % MAX_SNAPSHOTS] =
            (struct snapshot){position, ticks_now(), state.launches, note_totals()};
    }
}

static bool find_snapshot(uint64_t position, struct counters *found)
{
    if (state.snapshots == NULL) {
        return false;
    }
    const struct snapshot *snapshot = &state.snapshots[position % MAX_SNAPSHOTS];
    if (snapshot->position != position || snapshot->totals == 0) {
        return false;
    }
    *found = (struct counters){position, snapshot->ticks, snapshot->launches,
                               state.totals[(snapshot->totals - 1) % MAX_TOTALS]};
    return true;
}

void stats_skip_to(uint64_t position)
{
    struct counters at;
    state.rows_end = find_snapshot(position, &at) ? at : count_now(position);
}

uint64_t stats_launches_before(uint64_t position)
{
    struct counters at;
    return find_snapshot(position, &at) ? at.launches : 0;
}

uint64_t stats_rows_end(void)
{
    return state.rows_end.position;
}

uint32_t stats_row_count(void)
{
    return state.row_count;
}

void stats_row(uint64_t position)
{
    struct counters end, begin = state.rows_end;
    if (state.rows == NULL || position <= begin.position || state.row_count == MAX_ROWS) {
        return;
    }
    if (!find_snapshot(position, &end)) {
        end = count_now(position);
    }
    tracing_iteration(state.row_count, begin.position, position, begin.totals.phase);
    struct row *row = &state.rows[state.row_count++];
    state.has_oom = false; /* the program went on after what was refused it */
    const struct totals *from = &begin.totals, *to = &end.totals;
    row->phase = from->phase;
    row->delta =
        (struct counters){.position = end.position,
                          .ticks = end.ticks - begin.ticks,
                          .launches = end.launches - begin.launches,
                          .totals = {.replayed = to->replayed - from->replayed,
                                     .replayed_nanoseconds = to->replayed_nanoseconds - from->replayed_nanoseconds,
                                     .out_bytes = to->out_bytes - from->out_bytes,
                                     .in_bytes = to->in_bytes - from->in_bytes,
                                     .audited_bytes = to->audited_bytes - from->audited_bytes,
                                     .driver_calls = to->driver_calls - from->driver_calls,
                                     .host_syncs = to->host_syncs - from->host_syncs}};
    state.rows_end = end;
}

/* ---- writing ---- */

struct sink {
    int descriptor;
    bool has_failed;
    size_t used;
    char buffer[8192];
};

static void flush(struct sink *sink)
{
    if (sink->used > 0 && !say_write(sink->descriptor, sink->buffer, sink->used)) {
        sink->has_failed = true;
    }
    sink->used = 0;
}

__attribute__((format(__printf__, 2, 3))) static void put(struct sink *sink, const char *format, ...)
{
    if (sizeof sink->buffer - sink->used < SAY_MAX) {
        flush(sink);
    }
    va_list list;
    va_start(list, format);
    sink->used += say_format_list(sink->buffer + sink->used, sizeof sink->buffer - sink->used, format, list);
    va_end(list);
}

static const char *outcome(void)
{
    if (state.has_oom) {
        return "oom";
    }
    if (!state.has_pressure || config()->cap_bytes == 0) {
        return "fits";
    }
    if (state.phase != PHASE_PLANNED && state.phase != PHASE_PROBATION && follow_script() == NULL) {
        return "reactive";
    }
    return state.is_plan_swapping ? "swap" : "recompute";
}

static void put_rows(struct sink *sink)
{
    put(sink, "  \"iterations\": [");
    for (uint32_t i = 0; i < state.row_count; i++) {
        const struct row *row = &state.rows[i];
        const struct totals *d = &row->delta.totals;
        put(sink, "%s\n    {\"index\": %u, \"phase\": \"%s\", \"seconds\": %.9f, \"launches\": %llu, ",
            i == 0 ? "" : ",", i, phase_name(row->phase), seconds_of(row->delta.ticks),
            (unsigned long long)row->delta.launches);
        put(sink, "\"replayed_launches\": %llu, \"replayed_seconds\": %.9f, ", (unsigned long long)d->replayed,
            (double)d->replayed_nanoseconds / 1e9);
        put(sink, "\"swapped_out_bytes\": %llu, \"swapped_in_bytes\": %llu, \"audited_bytes\": %llu, ",
            (unsigned long long)d->out_bytes, (unsigned long long)d->in_bytes, (unsigned long long)d->audited_bytes);
        put(sink, "\"driver_memory_calls\": %llu, \"host_syncs\": %llu}", (unsigned long long)d->driver_calls,
            (unsigned long long)d->host_syncs);
    }
    put(sink, "\n  ],\n");
}

static void put_doors(struct sink *sink)
{
    put(sink, "  \"doors\": {");
    for (uint32_t i = 0; i < DOOR_COUNT; i++) {
        put(sink, "%s\"%s\": %llu", i == 0 ? "" : ", ", doors_name((enum door)i),
            (unsigned long long)doors_calls((enum door)i));
    }
    put(sink, "},\n");
}

static void put_everything(struct sink *sink)
{
    struct frames_counts frames = frames_count();
    struct proven_counts proven = proven_count();
    put(sink, "{\n  \"cap_bytes\": %llu,\n  \"frame_bytes\": %llu,\n", (unsigned long long)config()->cap_bytes,
        (unsigned long long)frames.frame_bytes);
    put(sink, "  \"demand_peak_bytes\": %llu,\n  \"resident_peak_bytes\": %llu,\n  \"outcome\": \"%s\",\n",
        (unsigned long long)state.demand_peak, (unsigned long long)frames.peak_frames * frames.frame_bytes, outcome());
    put(sink, "  \"planned_seconds\": %.9f,\n  \"planned_peak_bytes\": %llu,\n",
        (double)state.planned_nanoseconds / 1e9, (unsigned long long)state.planned_peak);
    put_rows(sink);
    put(sink, "  \"recipes\": {\"verified\": %llu, \"rejected\": %u, \"audited\": %llu, \"mismatched\": %llu},\n",
        (unsigned long long)proven.verified, learn_rejected(), (unsigned long long)proven.audited,
        (unsigned long long)proven.mismatched);
    put_doors(sink);
    put(sink, "  \"dropped_records\": %llu\n}\n", (unsigned long long)(learn_dropped_records() + recorder_lost()));
}

void stats_write(const char *path)
{
    static struct sink sink;
    if (path == NULL) {
        return;
    }
    sink = (struct sink){.descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (sink.descriptor < 0) {
        say(SAY_ERROR, "cannot write the stats to %s (error %d)", path, errno);
        return;
    }
    put_everything(&sink);
    flush(&sink);
    if (close(sink.descriptor) != 0 || sink.has_failed) {
        say(SAY_ERROR, "the stats in %s are incomplete", path);
    }
}
