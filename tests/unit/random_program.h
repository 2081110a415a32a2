/* Programs that nobody would write: random operations on random buffers and on pieces of them, freed at random. What
 * they compute never depends on bytes that nobody wrote, though such bytes are copied and changed as well. */
#pragma once
#include "tests/unit/network.h"

#define PROGRAM_FRAME       4096u
#define PROGRAM_LARGE       (6u * PROGRAM_FRAME)
#define PROGRAM_SMALL       1024u
#define PROGRAM_MAX_BUFFERS 96u
#define PROGRAM_MAX_STEPS   320u
#define PROGRAM_MAX_PARTS   16u
#define PROGRAM_MAX_PIECES  4u
#define PROGRAM_GIVEN_SMALL 4u /* buffers 0 .. 3 */
#define PROGRAM_GIVEN_LARGE 2u /* then these; all others live within an iteration */
#define PROGRAM_GIVEN       (PROGRAM_GIVEN_SMALL + PROGRAM_GIVEN_LARGE)

enum step_kind { STEP_ALLOCATE, STEP_FREE, STEP_LAUNCH, STEP_CLEAR, STEP_COPY, STEP_INPUT, STEP_OUTPUT, STEP_LANE };

/* Rows of `width` bytes in a buffer: the first begins at `at`, the next `pitch` bytes later. */
struct piece {
    uint32_t at, rows, width, pitch;
};

/* CLEAR and COPY (to and from the same place of two buffers) are of a piece; LAUNCH of one if it has rows. */
struct step {
    enum step_kind kind;
    uint32_t kernel, count;
    uint32_t buffers[5];
    uint64_t words;
    struct piece piece;
    uint32_t piece_buffer; /* index in `buffers` */
    uint32_t lane;         /* of LANE: what follows goes there */
};

/* A buffer that is written piece by piece; the pieces are apart. */
struct part {
    uint32_t buffer, piece_count;
    struct piece pieces[PROGRAM_MAX_PIECES];
    bool is_written[PROGRAM_MAX_PIECES];
    bool is_covering; /* the pieces are all of it */
    bool is_in_words; /* they begin and end at words of 8 bytes */
};

struct program {
    struct step steps[PROGRAM_MAX_STEPS];
    uint32_t step_count;
    size_t bytes[PROGRAM_MAX_BUFFERS];
    uint32_t buffer_count;
    uint32_t live[PROGRAM_MAX_BUFFERS], live_count; /* while it is made up: buffers that are written as a whole */
    struct part parts[PROGRAM_MAX_PARTS];           /* ... and those that are not yet */
    uint32_t part_count;
    bool has_lanes;   /* some operations are on a second stream, behind all before them */
    bool has_extents; /* some kernels write less in one iteration than in another, as the data say */
    uint64_t random;
};

void program_make(struct program *program, uint64_t seed, bool has_extents, bool has_lanes);
