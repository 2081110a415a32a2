#include "shim/stats.h"

#include "shim/config.h"
#include "shim/doors.h"
#include "shim/follow.h"
#include "shim/frames.h"
#include "shim/learn.h"
#include "shim/proven.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "shim/inside.h"

#define MAX_SNAPSHOTS (1u << 20)            /* a ring */
#define MAX_ROWS (1u << 20)

struct counters {
    uint64_t position, nanoseconds, launches, replayed, replayed_nanoseconds;
    uint64_t out_bytes, in_bytes, audited_bytes, driver_calls, host_syncs;
    enum phase phase;
};

struct row {
    struct counters delta;
    enum phase phase;
};

static struct {
    struct counters *snapshots;
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
    static const char *const names[] = { "pass-through", "recording", "probation", "planned", "reactive" };
    return names[phase];
}

void stats_open(void)
{
    state.snapshots = store_reserve(sizeof *state.snapshots * MAX_SNAPSHOTS, "iteration counters");
    state.rows = store_reserve(sizeof *state.rows * MAX_ROWS, "iterations");
}

void stats_launched(void)
{
    state.launches++;
}

void stats_set_phase(enum phase phase)
{
    state.phase = phase;
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

static struct counters count_now(uint64_t position)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct swap_counts swaps = swap_count();
    struct follow_counts follows = follow_count();
    return (struct counters){ .position = position,
                              .nanoseconds = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec,
                              .launches = state.launches,
                              .replayed = follows.replayed,
                              .replayed_nanoseconds = follows.replayed_nanoseconds,
                              .out_bytes = swaps.out_bytes,
                              .in_bytes = swaps.in_bytes,
                              .audited_bytes = swaps.audited_bytes,
                              .driver_calls = frames_count().driver_calls,
                              .host_syncs = streams_host_waits(),
                              .phase = state.phase };
}

void stats_snapshot(uint64_t position)
{
    if (state.snapshots != NULL) {
        state.snapshots[position % MAX_SNAPSHOTS] = count_now(position);
    }
}

static bool find_snapshot(uint64_t position, struct counters *found)
{
    if (state.snapshots == NULL || state.snapshots[position % MAX_SNAPSHOTS].position != position ||
        state.snapshots[position % MAX_SNAPSHOTS].nanoseconds == 0) {
        return false;
    }
    *found = state.snapshots[position % MAX_SNAPSHOTS];
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
    struct row *row = &state.rows[state.row_count++];
    row->phase = begin.phase > end.phase && begin.phase == PHASE_REACTIVE ? PHASE_REACTIVE : begin.phase;
    row->delta = (struct counters){ .position = end.position,
                                    .nanoseconds = end.nanoseconds - begin.nanoseconds,
                                    .launches = end.launches - begin.launches,
                                    .replayed = end.replayed - begin.replayed,
                                    .replayed_nanoseconds = end.replayed_nanoseconds - begin.replayed_nanoseconds,
                                    .out_bytes = end.out_bytes - begin.out_bytes,
                                    .in_bytes = end.in_bytes - begin.in_bytes,
                                    .audited_bytes = end.audited_bytes - begin.audited_bytes,
                                    .driver_calls = end.driver_calls - begin.driver_calls,
                                    .host_syncs = end.host_syncs - begin.host_syncs };
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
    if (!state.has_pressure) {
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
        const struct counters *d = &row->delta;
        put(sink, "%s\n    {\"index\": %u, \"phase\": \"%s\", \"seconds\": %.9f, \"launches\": %llu, ",
            i == 0 ? "" : ",", i, phase_name(row->phase), (double)d->nanoseconds / 1e9,
            (unsigned long long)d->launches);
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
    put(sink, "  \"planned_seconds\": %.9f,\n  \"planned_peak_bytes\": %llu,\n", (double)state.planned_nanoseconds / 1e9,
        (unsigned long long)state.planned_peak);
    put_rows(sink);
    put(sink, "  \"recipes\": {\"verified\": %llu, \"rejected\": %u, \"audited\": %llu, \"mismatched\": %llu},\n",
        (unsigned long long)proven.verified, learn_rejected(), (unsigned long long)proven.audited,
        (unsigned long long)proven.mismatched);
    put_doors(sink);
    put(sink, "  \"dropped_records\": %llu\n}\n", (unsigned long long)learn_dropped_records());
}

void stats_write(const char *path)
{
    static struct sink sink;
    if (path == NULL) {
        return;
    }
    sink = (struct sink){ .descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) };
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
