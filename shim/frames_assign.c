/* Which frame each page gets while iterations repeat. See frames.h and policy/assign.h. */
#include "policy/assign.h"
#include "shim/frames_table.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define ASSIGN_EFFORT 400000000ull /* comparisons: about half a second */

void frames_watch(void)
{
    if (frames_state.events == NULL) {
        frames_state.events = store_reserve(sizeof *frames_state.events * FRAMES_MAX_EVENTS, "frame events");
    }
    frames_state.event_count = 0;
    frames_state.is_watching = frames_state.events != NULL;
}

void frames_unwatch(void)
{
    frames_state.is_watching = false;
}

/* Working memory of one assignment; arena pages and frames are renumbered so that only those that change take part. */
struct assignment {
    uint32_t *number;                 /* per arena page, plus one; 0: not seen */
    uint32_t *pages;                  /* by number */
    uint32_t *span_first, *span_next; /* per number: where its spans go */
    struct assign_span *spans;
    uint32_t *frames;       /* by number: frame */
    uint32_t *frame_number; /* per frame, plus one */
    uint32_t *preferred, *chosen;
    uint32_t page_count, frame_count;
};

static bool assignment_open(struct assignment *a)
{
    size_t events = frames_state.event_count;
    a->number = store_reserve(sizeof(uint32_t) * frames_state.page_count, "assignment");
    a->pages = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    a->span_first = store_reserve(sizeof(uint32_t) * (events + 2), "assignment");
    a->span_next = store_reserve(sizeof(uint32_t) * (events + 2), "assignment");
    a->spans = store_reserve(sizeof *a->spans * (events + 1), "assignment");
    a->frames = store_reserve(sizeof(uint32_t) * (frames_state.cap + 1ul), "assignment");
    a->frame_number = store_reserve(sizeof(uint32_t) * (frames_state.cap + 1ul), "assignment");
    a->preferred = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    a->chosen = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    return a->number != NULL && a->pages != NULL && a->span_first != NULL && a->span_next != NULL && a->spans != NULL &&
           a->frames != NULL && a->frame_number != NULL && a->preferred != NULL && a->chosen != NULL;
}

static void assignment_close(struct assignment *a)
{
    size_t events = frames_state.event_count;
    store_return(a->number, sizeof(uint32_t) * frames_state.page_count);
    store_return(a->pages, sizeof(uint32_t) * (events + 1));
    store_return(a->span_first, sizeof(uint32_t) * (events + 2));
    store_return(a->span_next, sizeof(uint32_t) * (events + 2));
    store_return(a->spans, sizeof *a->spans * (events + 1));
    store_return(a->frames, sizeof(uint32_t) * (frames_state.cap + 1ul));
    store_return(a->frame_number, sizeof(uint32_t) * (frames_state.cap + 1ul));
    store_return(a->preferred, sizeof(uint32_t) * (events + 1));
    store_return(a->chosen, sizeof(uint32_t) * (events + 1));
}

/* Numbers the pages and counts their spans: one for each time they take a frame, and one for what was held before. */
static void number_pages(struct assignment *a)
{
    for (uint32_t i = 0; i < frames_state.event_count; i++) {
        uint32_t *number = &a->number[frames_state.events[i].page];
        bool is_first = *number == 0;
        if (is_first) {
            a->pages[a->page_count] = frames_state.events[i].page;
            *number = ++a->page_count;
        }
        a->span_first[*number] += frames_state.events[i].is_taken || is_first;
    }
    for (uint32_t i = 1; i <= a->page_count; i++) {
        a->span_first[i] += a->span_first[i - 1];
        a->span_next[i] = a->span_first[i];
    }
    a->span_next[0] = 0;
}

/* Events of a page alternate, so its spans are filled in order. */
static uint32_t fill_spans(struct assignment *a)
{
    for (uint32_t i = 0; i < frames_state.event_count; i++) {
        uint32_t number = a->number[frames_state.events[i].page] - 1;
        uint32_t *next = &a->span_next[number];
        if (frames_state.events[i].is_taken) {
            a->spans[(*next)++] = (struct assign_span){number, i, frames_state.event_count};
        } else if (*next == a->span_first[number]) {
            a->spans[(*next)++] = (struct assign_span){number, 0, i};
        } else {
            a->spans[*next - 1].end = i;
        }
    }
    return a->span_first[a->page_count];
}

/* Frames that one page held all the time are not to be had. */
static void number_frames(struct assignment *a)
{
    for (uint32_t i = 0; i < frames_state.first_unused; i++) {
        const struct frame *frame = &frames_state.frames[i];
        if (frame->exists && (frame->owner == FRAMES_NONE || a->number[frame->owner] != 0)) {
            a->frames[a->frame_count] = i;
            a->frame_number[i] = ++a->frame_count;
        }
    }
    for (uint32_t i = 0; i < a->page_count; i++) {
        uint32_t frame = frames_state.pages[a->pages[i]].frame;
        a->preferred[i] = frame == 0 || a->frame_number[frame - 1] == 0 ? ASSIGN_NONE : a->frame_number[frame - 1] - 1;
    }
}

void frames_assign(void)
{
    struct assignment a = {0};
    if (!frames_state.is_watching || frames_state.event_count == 0) {
        frames_state.is_watching = false;
        return;
    }
    frames_state.is_watching = false;
    if (assignment_open(&a)) {
        number_pages(&a);
        uint32_t span_count = fill_spans(&a);
        number_frames(&a);
        struct assign_problem problem = {.spans = a.spans,
                                         .span_count = span_count,
                                         .page_count = a.page_count,
                                         .frame_count = a.frame_count,
                                         .preferred = a.preferred,
                                         .effort = ASSIGN_EFFORT};
        uint32_t assigned = assign_frames(&problem, a.chosen);
        for (uint32_t i = 0; i < a.page_count && assigned != UINT32_MAX; i++) {
            frames_state.pages[a.pages[i]].wanted = a.chosen[i] == ASSIGN_NONE ? 0 : a.frames[a.chosen[i]] + 1;
        }
        say(SAY_DEBUG, "frames assigned to %u of %u pages, %u frames", assigned, a.page_count, a.frame_count);
    }
    assignment_close(&a);
}
