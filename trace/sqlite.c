#include "trace/sqlite.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

extern const char sqlite_tables[];

struct filler {
    sqlite3 *database;
    sqlite3_stmt *insert; /* of the table that is being filled */
    int column;           /* bound so far in this row */
    bool has_failed;
};

static void note(struct filler *filler, int result)
{
    if (result != SQLITE_OK && result != SQLITE_DONE)
        filler->has_failed = true;
}

static void run(struct filler *filler, const char *text)
{
    if (!filler->has_failed)
        note(filler, sqlite3_exec(filler->database, text, NULL, NULL, NULL));
}

static void begin_table(struct filler *filler, const char *insert)
{
    if (!filler->has_failed)
        note(filler, sqlite3_prepare_v2(filler->database, insert, -1, &filler->insert, NULL));
    filler->column = 0;
}

static void end_table(struct filler *filler)
{
    sqlite3_finalize(filler->insert);
    filler->insert = NULL;
}

static void put_number(struct filler *filler, uint64_t number)
{
    if (!filler->has_failed)
        note(filler, sqlite3_bind_int64(filler->insert, ++filler->column, (sqlite3_int64)number));
}

/* TRACE_NONE stands for what is not known: NULL. */
static void put_index(struct filler *filler, uint32_t index)
{
    if (filler->has_failed)
        return;
    filler->column++;
    note(filler, index == TRACE_NONE ? sqlite3_bind_null(filler->insert, filler->column)
                                     : sqlite3_bind_int64(filler->insert, filler->column, index));
}

static void put_null(struct filler *filler)
{
    put_index(filler, TRACE_NONE);
}

static void put_text(struct filler *filler, const char *text)
{
    if (!filler->has_failed)
        note(filler, sqlite3_bind_text(filler->insert, ++filler->column, text, -1, SQLITE_STATIC));
}

static void end_row(struct filler *filler)
{
    if (filler->has_failed)
        return;
    note(filler, sqlite3_step(filler->insert));
    note(filler, sqlite3_reset(filler->insert));
    filler->column = 0;
}

static void fill_run(struct filler *filler, const struct model *model)
{
    const struct trace *trace = model->trace;
    begin_table(filler, "INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    put_text(filler, model->strings[model->program]);
    put_text(filler, model->strings[model->device]);
    put_number(filler, trace->run.process);
    put_index(filler, trace->run.rank);
    put_number(filler, trace->run.device_bytes);
    put_number(filler, trace->run.frame_bytes);
    if (trace->run.cap_bytes)
        put_number(filler, trace->run.cap_bytes);
    else
        put_null(filler);
    put_number(filler, trace->run.started_unix_ns);
    put_number(filler, trace->end_at);
    put_number(filler, trace->is_cut);
    put_number(filler, trace->lost_count);
    end_row(filler);
    end_table(filler);
}

static void fill_texts(struct filler *filler, const struct model *model)
{
    begin_table(filler, "INSERT INTO text VALUES (?,?)");
    for (uint32_t i = 0; i < model->string_count; i++) {
        put_number(filler, i);
        put_text(filler, model->strings[i]);
        end_row(filler);
    }
    end_table(filler);
}

static void fill_frames(struct filler *filler, const struct model *model)
{
    begin_table(filler, "INSERT INTO frame VALUES (?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < model->stack_count; i++)
        for (uint32_t depth = 0; depth < model->stacks[i].count; depth++) {
            const struct model_frame *frame = &model->frames[model->stacks[i].first + depth];
            put_number(filler, i);
            put_number(filler, depth);
            put_text(filler, model->strings[frame->function]);
            put_text(filler, model->strings[frame->file]);
            put_number(filler, frame->line);
            put_text(filler, model->strings[frame->module]);
            put_number(filler, depth == model->stacks[i].origin);
            end_row(filler);
        }
    end_table(filler);
}

static void fill_stretch(struct filler *filler, const struct model *model, const struct model_view *view,
                         const char *name)
{
    begin_table(filler, "INSERT INTO stretch VALUES (?,?,?,?,?,?,?)");
    put_text(filler, name);
    put_number(filler, view == model_main_view(model));
    put_number(filler, view->position_count);
    put_number(filler, view->peak_position);
    put_number(filler, view->clock_ns[view->peak_position]);
    put_number(filler, view->peak_bytes);
    put_number(filler, view->clock_ns[view->position_count]);
    end_row(filler);
    end_table(filler);
    begin_table(filler, "INSERT INTO span VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < view->span_count; i++) {
        const struct model_span *span = &view->spans[i];
        put_text(filler, name);
        put_number(filler, span->bytes);
        put_number(filler, span->born);
        put_number(filler, span->ends);
        put_number(filler, view->clock_ns[span->born]);
        put_number(filler, view->clock_ns[span->ends]);
        put_text(filler, kind_name((enum kind)span->kind));
        put_number(filler, span->name);
        put_number(filler, model->stacks[span->stack].place);
        put_number(filler, span->stack);
        if (span->life == TRACE_NONE)
            put_null(filler);
        else
            put_number(filler, model->trace->lives[span->life].id);
        put_number(filler, span->reads);
        put_text(filler, model_verdict_names[span->verdict]);
        put_number(filler, span->reason);
        put_number(filler, model_is_at(span, view->peak_position));
        end_row(filler);
    }
    end_table(filler);
}

static void fill_allocations(struct filler *filler, const struct model *model)
{
    static const char *const sources[] = {"arena", "slab", "outside", "own"};
    const struct trace *trace = model->trace;
    begin_table(filler, "INSERT INTO allocation VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < model->run.span_count; i++) {
        const struct model_span *span = &model->run.spans[i];
        const struct trace_life *life = &trace->lives[span->life];
        put_number(filler, life->id);
        put_number(filler, life->address);
        put_number(filler, life->bytes);
        put_number(filler, life->footprint_bytes);
        put_number(filler, life->held_at);
        if (life->freed_at == TRACE_NEVER)
            put_null(filler);
        else
            put_number(filler, life->freed_at);
        put_text(filler, sources[life->source]);
        put_text(filler, life->what ? model->strings[span->name] : "");
        put_text(filler, kind_name((enum kind)span->kind));
        put_number(filler, life->thread);
        put_number(filler, life->stack);
        end_row(filler);
    }
    end_table(filler);
}

static void fill_operations(struct filler *filler, const struct model *model)
{
    const struct trace *trace = model->trace;
    begin_table(filler, "INSERT INTO operation VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < model->run.operation_count; i++) {
        const struct model_operation *operation = &model->run.operations[i];
        put_number(filler, i);
        put_number(filler, trace->submitted[i].number);
        put_number(filler, operation->start_ns);
        put_number(filler, operation->nanoseconds);
        put_text(filler, model_operation_kind_names[operation->kind]);
        put_number(filler, operation->name);
        put_number(filler, operation->place);
        put_number(filler, operation->stream);
        put_number(filler, trace->submitted[i].thread);
        put_number(filler, operation->stack);
        put_number(filler, operation->moved_bytes);
        put_number(filler, operation->is_replay);
        end_row(filler);
    }
    end_table(filler);
}

static void fill_touches(struct filler *filler, const struct trace *trace)
{
    begin_table(filler, "INSERT INTO touch VALUES (?,?,?)");
    for (uint32_t i = 0; i < trace->submitted_count; i++)
        for (uint32_t t = 0; t < trace->submitted[i].touch_count; t++) {
            const struct trace_touched *touched = &trace->touches[trace->submitted[i].first_touch + t];
            put_number(filler, i);
            if (touched->life == TRACE_NONE)
                put_null(filler);
            else
                put_number(filler, trace->lives[touched->life].id);
            put_number(filler, touched->access);
            end_row(filler);
        }
    end_table(filler);
}

static void fill_iterations(struct filler *filler, const struct model *model)
{
    begin_table(filler, "INSERT INTO iteration VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < model->iteration_count; i++) {
        const struct model_iteration *row = &model->iterations[i];
        put_number(filler, row->index);
        put_text(filler, model_phase_names[row->phase]);
        put_number(filler, row->start_ns);
        put_number(filler, row->end_ns);
        put_number(filler, row->peak_bytes);
        put_number(filler, row->operations);
        put_number(filler, row->replays);
        put_number(filler, row->replayed_ns);
        put_number(filler, row->out_bytes);
        put_number(filler, row->in_bytes);
        put_number(filler, row->is_analysed);
        end_row(filler);
    }
    end_table(filler);
}

static void fill_counters(struct filler *filler, const struct trace *trace)
{
    static const char *const movements[] = {"drop", "rebuild", "swap out", "swap in", "audit"};
    begin_table(filler, "INSERT INTO movement VALUES (?,?,?,?)");
    for (uint32_t i = 0; i < trace->shift_count; i++) {
        put_number(filler, trace->shifts[i].event.nanoseconds);
        put_text(filler, movements[trace->shifts[i].movement]);
        put_number(filler, trace->shifts[i].id);
        put_number(filler, trace->shifts[i].bytes);
        end_row(filler);
    }
    end_table(filler);
    begin_table(filler, "INSERT INTO resident VALUES (?,?,?,?)");
    for (uint32_t i = 0; i < trace->resident_count; i++) {
        put_number(filler, trace->residents[i].event.nanoseconds);
        put_number(filler, trace->residents[i].frames_bytes);
        put_number(filler, trace->residents[i].outside_bytes);
        put_number(filler, trace->residents[i].demand_bytes);
        end_row(filler);
    }
    end_table(filler);
}

static void fill(struct filler *filler, const struct model *model)
{
    /* The file is renamed when it is whole: a journal would protect nothing. */
    run(filler, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    run(filler, sqlite_tables);
    fill_run(filler, model);
    fill_texts(filler, model);
    fill_frames(filler, model);
    if (model->run.position_count)
        fill_stretch(filler, model, &model->run, "run");
    if (model->iteration.position_count)
        fill_stretch(filler, model, &model->iteration, "iteration");
    fill_allocations(filler, model);
    fill_operations(filler, model);
    fill_touches(filler, model->trace);
    fill_iterations(filler, model);
    fill_counters(filler, model->trace);
    run(filler, "CREATE INDEX touch_by_allocation ON touch (allocation);"
                "CREATE INDEX touch_by_operation ON touch (operation); COMMIT");
}

bool sqlite_write(const char *path, const struct model *model, char *why, size_t why_bytes)
{
    struct filler filler = {0};
    note(&filler, sqlite3_open_v2(path, &filler.database, SQLITE_OPEN_READWRITE, NULL));
    fill(&filler, model);
    if (filler.has_failed)
        snprintf(why, why_bytes, "SQLite says: %s",
                 filler.database ? sqlite3_errmsg(filler.database) : "there is no memory");
    if (sqlite3_close(filler.database) != SQLITE_OK && !filler.has_failed) {
        snprintf(why, why_bytes, "SQLite could not close it");
        filler.has_failed = true;
    }
    return !filler.has_failed;
}
