/* What the outputs of the report show, computed once from a trace; report.c, html*.c, sqlite.c and perfetto.c only
 * print it.
 *
 *   view        one stretch of time with what was held in it: the whole run, from its events, or the analysed
 *               iteration, from its versions
 *   position    a moment of a view, from 0: in the iteration an operation, in the run an allocation, a free or an
 *               operation
 *   span        bytes that are held from one position to another: an allocation of the run; in the iteration a version,
 *               or an allocation whose versions are not known
 *   site        a place in the program that made spans: the operation that wrote them first, and from which file and
 * line it was submitted; where nothing wrote them, the file and line of the allocation held        per position: the
 * bytes of all spans that cover it, which is what the program held then turn        the position of an iteration across
 * which most bytes are carried from their producer to a later reader: in training, where the forward pass ends and the
 * backward pass begins
 *
 * Invariants, in each view
 *   the spans of one allocation do not overlap and cover its whole life; so for every position p
 *       sum of bytes of spans with born <= p < ends  ==  held[p]
 *   held[peak_position] == peak_bytes >= held[p], and peak_position is the first such p
 *   the sums over kinds, over verdicts and over sites at the peak are each peak_bytes
 *   string 0 is ""
 *
 * A span has the kind of its allocation (trace/kinds.h). Where an analysed iteration does not say which allocation of
 * the run it is, the kind comes from its versions, by the first rule that fits:
 *   weights     there when the iteration begins
 *   workspace   made in it and never read by a later operation
 *   activation  made before the turn and read at it or later
 *   temporary   everything else */
#pragma once
#include "trace/file.h"
#include "trace/kinds.h"

/* What a plan may do with a span. */
enum model_verdict { MODEL_RECOMPUTE, MODEL_SWAP, MODEL_HOLD, MODEL_VERDICTS };

extern const char *const model_verdict_names[MODEL_VERDICTS];
extern const char *const model_phase_names[TRACE_REACTIVE + 1];
extern const char *const model_operation_kind_names[TRACE_SET + 1];

struct model_span {
    uint64_t bytes;
    uint32_t born, ends;          /* positions; ends is the first one without it */
    uint32_t producer, last_read; /* numbers in view.operations, or TRACE_NONE */
    uint32_t reads;               /* operations that read it */
    uint32_t allocation, version; /* of the iteration; TRACE_NONE */
    uint32_t life;                /* of the trace; TRACE_NONE: not known */
    uint32_t site, name, reason;  /* site; strings: what made it, why it cannot be recomputed */
    uint32_t stack;               /* number in model.stacks: where it was made or written first */
    uint8_t kind, verdict;        /* enum kind, enum model_verdict */
};

struct model_site {
    uint32_t name, place; /* strings: "softmax_forward_kernel", "attention.cu:61" ("" if not known) */
    uint32_t stack;       /* one that leads there; 0: none */
    uint32_t kind;        /* of the most bytes x time */
    uint32_t span_count, peak_count;
    uint64_t peak_bytes; /* held at the peak */
    uint64_t most_bytes; /* of one span */
    double byte_seconds;
    double life_seconds;                    /* sum over its spans */
    uint64_t verdict_bytes[MODEL_VERDICTS]; /* at the peak */
};

struct model_operation {
    uint64_t start_ns, nanoseconds;
    uint64_t moved_bytes;
    uint32_t position;
    uint32_t name, place, reason; /* strings */
    uint32_t stack;
    uint32_t stream, kind; /* kind: enum trace_operation_kind */
    bool is_replay, is_replayable;
};

struct model_view {
    struct model_span *spans; /* in the order of born */
    struct model_site *sites; /* by falling peak_bytes, then byte_seconds */
    struct model_operation *operations;
    uint32_t span_count, site_count, operation_count, position_count;
    uint64_t *held;     /* [position_count] */
    uint64_t *clock_ns; /* [position_count + 1]: never falling; from the iteration's or the run's start */
    uint32_t peak_position, turn;
    uint64_t peak_bytes;
    uint64_t kind_bytes[KIND_COUNT], verdict_bytes[MODEL_VERDICTS]; /* at the peak */
    uint32_t kind_count[KIND_COUNT];                                /* spans at the peak */
};

struct model_frame {
    uint32_t function, file, module; /* strings */
    uint32_t line;
};

struct model_stack { /* innermost first */
    uint32_t first, count;
    uint32_t
        origin;     /* index among its frames: the one to tell (trace/symbols.h), or its caller where several call it */
    uint32_t place; /* string: "attention.cu:61" of that frame, its function if the file is not known */
};

/* What happened in one iteration of the run. */
struct model_iteration {
    uint64_t index, start_ns, end_ns;
    uint32_t phase, operations, replays;
    uint64_t replayed_ns, out_bytes, in_bytes, peak_bytes;
    bool is_analysed;
};

struct model {
    const struct trace *trace;             /* not owned */
    const struct trace_recorded *recorded; /* the analysed iteration that is shown; NULL: there is none */
    char **strings;                        /* UTF-8, whatever the trace holds */
    uint32_t string_count, string_capacity;
    uint32_t program, device;   /* strings */
    struct model_stack *stacks; /* as in the trace */
    struct model_frame *frames;
    uint32_t stack_count, frame_count;
    struct model_iteration *iterations;
    uint32_t iteration_count;
    struct model_view iteration, run; /* position_count 0: not there */
};

/* False if there is no memory. To be released; the trace must stay until then. */
bool model_make(const struct trace *trace, struct model *out);
void model_release(struct model *model);

/* The run if its events are there, else the iteration; the view whose peak is told. */
static inline const struct model_view *model_main_view(const struct model *model)
{
    return model->run.position_count ? &model->run : &model->iteration;
}

static inline bool model_is_at(const struct model_span *span, uint32_t position)
{
    return span->born <= position && position < span->ends;
}

static inline double model_life_seconds(const struct model_view *view, const struct model_span *span)
{
    return (double)(view->clock_ns[span->ends] - view->clock_ns[span->born]) / 1e9;
}

static inline double model_byte_seconds(const struct model_view *view, const struct model_span *span)
{
    return (double)span->bytes * model_life_seconds(view, span);
}

/* Numbers of spans of this kind (KIND_COUNT: any) by falling bytes x time, `most` of them at most. Returns how many. */
uint32_t model_longest(const struct model_view *view, enum kind kind, uint32_t *out, uint32_t most);
