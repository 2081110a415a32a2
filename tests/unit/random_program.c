#include "tests/unit/random_program.h"

#include "tests/unit/child.h"

#define SMALL       PROGRAM_SMALL
#define LARGE       PROGRAM_LARGE
#define GIVEN       PROGRAM_GIVEN
#define GIVEN_SMALL PROGRAM_GIVEN_SMALL
#define GIVEN_LARGE PROGRAM_GIVEN_LARGE

static uint32_t below(struct program *p, uint32_t limit)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (uint32_t)((p->random >> 11) % limit);
}

static struct step *add(struct program *p, enum step_kind kind)
{
    REQUIRE(p->step_count < PROGRAM_MAX_STEPS);
    struct step *step = &p->steps[p->step_count++];
    *step = (struct step){.kind = kind};
    return step;
}

static uint32_t allocate(struct program *p, size_t bytes)
{
    REQUIRE(p->buffer_count < PROGRAM_MAX_BUFFERS);
    uint32_t buffer = p->buffer_count++;
    p->bytes[buffer] = bytes;
    add(p, STEP_ALLOCATE)->buffers[0] = buffer;
    return buffer;
}

static uint32_t new_buffer(struct program *p)
{
    static const size_t sizes[] = {LARGE, LARGE, LARGE, LARGE - 72, LARGE / 2, 2 * LARGE, SMALL};
    uint32_t buffer = allocate(p, sizes[below(p, sizeof sizes / sizeof sizes[0])]);
    p->live[p->live_count++] = buffer;
    return buffer;
}

static uint32_t some_live(struct program *p)
{
    return p->live[below(p, p->live_count)];
}

static uint64_t common_words(const struct program *p, const struct step *step, uint32_t count)
{
    uint64_t words = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t own = p->bytes[step->buffers[i]] / 8;
        words = own < words ? own : words;
    }
    return words;
}

static void clear_all(struct program *p, uint32_t buffer)
{
    struct step *step = add(p, STEP_CLEAR);
    step->buffers[0] = buffer;
    step->piece = (struct piece){.rows = 1, .width = (uint32_t)p->bytes[buffer]};
}

static void add_copy(struct program *p, uint32_t to, uint32_t from, struct piece piece)
{
    struct step *step = add(p, STEP_COPY);
    step->buffers[0] = to;
    step->buffers[1] = from;
    step->piece = piece;
}

/* A kernel writes `words` of a new buffer: if that is not all of it, the rest must have been written before. */
static void cover(struct program *p, uint32_t buffer, uint64_t words)
{
    if (words * 8 < p->bytes[buffer]) {
        clear_all(p, buffer);
    }
}

static void add_launch(struct program *p, uint32_t kernel, uint32_t news, uint32_t news_count, const uint32_t *buffers,
                       uint32_t count, uint32_t sized)
{
    struct step launch = {.kind = STEP_LAUNCH, .kernel = kernel, .count = count};
    memcpy(launch.buffers, buffers, count * sizeof *buffers);
    launch.words = common_words(p, &launch, sized);
    for (uint32_t i = 0; i < news_count; i++) {
        cover(p, news + i, launch.words);
    }
    *add(p, STEP_LAUNCH) = launch;
}

/* ---- pieces ---- */

static struct piece run_of(size_t at, size_t bytes)
{
    return (struct piece){.at = (uint32_t)at, .rows = 1, .width = (uint32_t)bytes};
}

static void add_piece(struct part *part, struct piece piece)
{
    part->pieces[part->piece_count++] = piece;
}

/* Every second, or third, element is a piece. */
static void weave(struct program *p, struct part *part, uint32_t bytes)
{
    uint32_t element = 1u << below(p, 4), ways = 2 + below(p, 2), pitch = element * ways;
    for (uint32_t i = 0; i < ways; i++) {
        add_piece(part, (struct piece){i * element, bytes / pitch, element, pitch});
    }
    part->is_covering = bytes % pitch == 0;
}

static void lay_out(struct program *p, struct part *part)
{
    uint32_t bytes = (uint32_t)p->bytes[part->buffer], third = bytes / 24 * 8, odd = 1 + below(p, 7);
    part->is_covering = part->is_in_words = true;
    switch (below(p, 7)) {
    case 0:
        add_piece(part, run_of(0, third));
        add_piece(part, run_of(third, third));
        add_piece(part, run_of(2ul * third, bytes - 2 * third));
        break;
    case 1: /* the first frame */
        add_piece(part, run_of(0, PROGRAM_FRAME / 8));
        add_piece(part, run_of(PROGRAM_FRAME / 8, bytes - PROGRAM_FRAME / 8));
        break;
    case 2:
        part->is_in_words = false;
        weave(p, part, bytes);
        break;
    case 3: /* an odd tail that nobody ever writes */
        add_piece(part, run_of(0, third));
        add_piece(part, run_of(third, bytes - third - odd));
        part->is_covering = part->is_in_words = false;
        break;
    case 4: /* rows with gaps that nobody ever writes */
        add_piece(part, (struct piece){0, bytes / 64, 64 - odd, 64});
        part->is_covering = part->is_in_words = false;
        break;
    case 5:
        add_piece(part, run_of(0, bytes));
        break;
    default: /* the middle */
        add_piece(part, run_of(third, third));
        part->is_covering = false;
    }
}

static bool is_written(const struct part *part)
{
    bool is_all = part->is_covering;
    for (uint32_t i = 0; i < part->piece_count; i++) {
        is_all = is_all && part->is_written[i];
    }
    return is_all;
}

static void add_piece_launch(struct program *p, uint32_t kernel, const uint32_t *buffers, uint32_t count,
                             struct piece piece, uint32_t piece_buffer)
{
    struct step *launch = add(p, STEP_LAUNCH);
    launch->kernel = kernel;
    launch->count = count;
    memcpy(launch->buffers, buffers, count * sizeof *buffers);
    launch->piece = piece;
    launch->piece_buffer = piece_buffer;
}

/* Another buffer has just these bytes, somewhere. */
static bool copy_piece(struct program *p, uint32_t buffer, struct piece piece)
{
    uint32_t from = some_live(p);
    if (piece.rows > 1 || p->bytes[from] < piece.at + piece.width || from == buffer) {
        return false;
    }
    add_copy(p, buffer, from, piece);
    return true;
}

static void write_piece(struct program *p, uint32_t buffer, struct piece piece)
{
    uint32_t in = some_live(p), way = below(p, 4);
    if (way == 0) {
        struct step *step = add(p, STEP_CLEAR);
        step->buffers[0] = buffer;
        step->piece = piece;
    } else if (way > 1 || in == buffer || !copy_piece(p, buffer, piece)) {
        in = in == buffer ? 0 : in;
        add_piece_launch(p, NETWORK_write_piece, (uint32_t[]){buffer, in}, 2, piece, 0);
    }
}

/* How much of it is written depends on the data; at least the first half, and that is all that is read of it. */
static void write_some(struct program *p, struct part *part, uint32_t index)
{
    uint32_t in = some_live(p);
    add_piece_launch(p, NETWORK_write_some, (uint32_t[]){part->buffer, in}, 2, part->pieces[index], 0);
    part->pieces[index].width -= part->pieces[index].width / 2;
    part->is_covering = false;
}

static void touch_piece(struct program *p, struct part *part)
{
    uint32_t index = below(p, part->piece_count), buffer = part->buffer;
    if (!part->is_written[index]) {
        if (p->has_extents && part->pieces[index].rows == 1 && below(p, 2)) {
            write_some(p, part, index);
        } else {
            write_piece(p, buffer, part->pieces[index]);
        }
        part->is_written[index] = true;
    } else if (below(p, 3) == 0) {
        write_piece(p, buffer, part->pieces[index]); /* once more */
    } else {
        add_piece_launch(p, NETWORK_change_piece, &buffer, 1, part->pieces[index], 0);
    }
    if (part->is_in_words && below(p, 6) == 0) {
        add_piece_launch(p, NETWORK_change_piece, &buffer, 1, run_of(0, p->bytes[buffer] / 8 * 8), 0);
    }
}

static struct part *new_part(struct program *p, size_t bytes)
{
    if (p->part_count == PROGRAM_MAX_PARTS) {
        return NULL;
    }
    struct part *part = &p->parts[p->part_count++];
    *part = (struct part){.buffer = allocate(p, bytes)};
    return part;
}

/* All of it is copied, also what nobody wrote. */
static void copy_part(struct program *p, const struct part *part)
{
    struct part *copy = new_part(p, p->bytes[part->buffer]);
    if (copy != NULL) {
        uint32_t buffer = copy->buffer;
        *copy = *part;
        copy->buffer = buffer;
        add_copy(p, buffer, part->buffer, run_of(0, p->bytes[buffer]));
    }
}

static void forget_part(struct program *p, uint32_t at)
{
    p->parts[at] = p->parts[--p->part_count];
}

static void add_part_step(struct program *p)
{
    static const size_t sizes[] = {LARGE, LARGE, LARGE - 72, LARGE - 5, LARGE / 2 + 3, 2 * LARGE, SMALL, SMALL - 1};
    if (p->part_count == 0 || below(p, 4) == 0) {
        struct part *part = new_part(p, sizes[below(p, sizeof sizes / sizeof sizes[0])]);
        if (part != NULL) {
            lay_out(p, part);
            touch_piece(p, part);
        }
        return;
    }
    uint32_t at = below(p, p->part_count);
    if (below(p, 5) == 0) {
        copy_part(p, &p->parts[at]);
    } else {
        touch_piece(p, &p->parts[at]);
    }
    if (is_written(&p->parts[at]) && below(p, 3) == 0) {
        p->live[p->live_count++] = p->parts[at].buffer;
        forget_part(p, at);
    }
}

static void read_part(struct program *p, uint32_t at)
{
    const struct part *part = &p->parts[at];
    for (uint32_t i = 0; i < part->piece_count; i++) {
        if (part->is_written[i]) {
            add_piece_launch(p, NETWORK_read_piece, (uint32_t[]){below(p, GIVEN_SMALL), part->buffer}, 2,
                             part->pieces[i], 1);
        }
    }
}

/* Given buffers are changed in part, too. */
static void touch_given(struct program *p)
{
    uint32_t buffer = below(p, GIVEN), bytes = (uint32_t)p->bytes[buffer], at = bytes / 8 * below(p, 5);
    struct piece piece = below(p, 2) ? run_of(at, bytes / 4) : (struct piece){at, bytes / 64, 12, 32};
    if (below(p, 2)) {
        write_piece(p, buffer, piece);
    } else {
        add_piece_launch(p, NETWORK_change_piece, &buffer, 1, piece, 0);
    }
}

/* ---- forward ---- */

static void add_forward(struct program *p)
{
    uint32_t in = some_live(p), other = some_live(p), small = below(p, GIVEN_SMALL), fresh;
    switch (below(p, 12)) {
    case 0:
    case 1:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_linear_forward, fresh, 1, (uint32_t[]){fresh, in, small}, 3, 2);
        break;
    case 2:
    case 3:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_norm_forward, fresh, 1, (uint32_t[]){fresh, in, small}, 3, 2);
        break;
    case 4:
        add_launch(p, NETWORK_activate, 0, 0, &in, 1, 1);
        break;
    case 5:
        fresh = new_buffer(p);
        new_buffer(p);
        add_launch(p, NETWORK_dropout_forward, fresh, 2, (uint32_t[]){fresh, fresh + 1, in}, 3, 3);
        break;
    case 6:
        fresh = some_live(p);
        if (fresh != in) {
            add_launch(p, NETWORK_activate_backward, 0, 0, (uint32_t[]){fresh, in}, 2, 2);
        }
        break;
    case 7:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_linear_backward, fresh, 1,
                   (uint32_t[]){fresh, in, other, small, (small + 1) % GIVEN_SMALL}, 5, 3);
        break;
    case 8:
        fresh = below(p, 2) ? new_buffer(p) : some_live(p);
        clear_all(p, fresh);
        break;
    case 9:
        if (in != other &&
            other >= GIVEN) { /* of what is given, only probation can tell that the output depends on it */
            fresh = new_buffer(p);
            add_launch(p, NETWORK_turn_over, fresh, 1, (uint32_t[]){fresh, other, in}, 3, 3);
        }
        break;
    case 10:
        touch_given(p);
        break;
    default:
        fresh = new_buffer(p);
        clear_all(p, fresh);
        if (fresh != in) {
            add_copy(p, fresh, in, run_of(0, p->bytes[fresh] < p->bytes[in] ? p->bytes[fresh] : p->bytes[in]));
        }
    }
}

/* ---- backward ---- */

static void add_free(struct program *p, uint32_t at)
{
    add(p, STEP_FREE)->buffers[0] = p->live[at];
    memmove(&p->live[at], &p->live[at + 1], (p->live_count - at - 1) * sizeof *p->live);
    p->live_count--;
}

static void backward_part(struct program *p)
{
    uint32_t at = below(p, p->part_count);
    if (below(p, 2)) {
        touch_piece(p, &p->parts[at]);
    }
    read_part(p, at);
    add(p, STEP_FREE)->buffers[0] = p->parts[at].buffer;
    forget_part(p, at);
}

static void backward_buffer(struct program *p)
{
    uint32_t newest = p->live_count - 1,
             at = below(p, 4) == 0 ? GIVEN_LARGE + below(p, p->live_count - GIVEN_LARGE) : newest;
    uint32_t buffer = p->live[at], slot = below(p, GIVEN_SMALL);
    add_launch(p, NETWORK_add_mean, 0, 0, (uint32_t[]){slot, buffer}, 2, 2);
    p->steps[p->step_count - 1].words = p->bytes[buffer] / 8;
    if (below(p, 5) == 0 && buffer >= GIVEN) {
        add_launch(p, NETWORK_activate_backward, 0, 0, (uint32_t[]){GIVEN_SMALL + below(p, GIVEN_LARGE), buffer}, 2, 2);
    }
    if (below(p, 12) == 0) {
        add(p, STEP_OUTPUT)->buffers[0] = slot;
    }
    add_free(p, at);
}

/* The other half: everything is read once more, mostly the newest first, and freed. */
static void add_backward(struct program *p)
{
    while (p->live_count > GIVEN_LARGE || p->part_count > 0) {
        if (p->part_count > 0 && (p->live_count == GIVEN_LARGE || below(p, 3) == 0)) {
            backward_part(p);
        } else {
            backward_buffer(p);
        }
    }
}

void program_make(struct program *p, uint64_t seed, bool has_extents, bool has_lanes)
{
    memset(p, 0, sizeof *p);
    p->has_extents = has_extents;
    p->has_lanes = has_lanes;
    p->random = seed * 0x9e3779b97f4a7c15ull + 1;
    for (uint32_t i = 0; i < GIVEN; i++) {
        p->bytes[i] = i < GIVEN_SMALL ? SMALL : LARGE;
        if (i >= GIVEN_SMALL) {
            p->live[p->live_count++] = i;
        }
    }
    p->buffer_count = GIVEN;
    uint32_t input = new_buffer(p);
    add(p, STEP_INPUT)->buffers[0] = input;
    uint32_t forward = 16 + below(p, 16);
    for (uint32_t i = 0; i < forward; i++) {
        bool is_beside = p->has_lanes && below(p, 6) == 0;
        if (is_beside) {
            add(p, STEP_LANE)->lane = 1;
        }
        add_forward(p);
        if (is_beside) {
            add(p, STEP_LANE);
        }
        if (below(p, 2)) {
            add_part_step(p);
        }
        if (below(p, 10) == 0 && p->live_count > GIVEN_LARGE + 2) {
            add_free(p, GIVEN_LARGE + below(p, p->live_count - GIVEN_LARGE));
        }
    }
    add_backward(p);
    add(p, STEP_OUTPUT)->buffers[0] = 0;
}
