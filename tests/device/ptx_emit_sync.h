/* A point where a thread waits, as read from its instruction. Operands that are constant stand in the scheduler's
 * table; others are put into the exchange arrays by the thread that stops. */
#pragma once
#include "tests/device/ptx_emit.h"
#include "tests/device/ptx_run.h"

#define PTX_WORDS_MOST 40

struct sync {
    enum ptx_sync_kind kind;
    enum ptx_reduction reduction;
    const char *run; /* C of the body of the operation, or NULL */
    const struct ptx_operand *mask, *barrier, *count;
    const char *a, *b, *c; /* values for exchange_a, exchange_b, exchange_c */
    bool a_is_wide;
    const struct ptx_operand *result, *predicate;
    uint32_t word_count; /* of exchange_words */
    const char *words[PTX_WORDS_MOST];
};

/* mma, wmma, ldmatrix, stmatrix, movmatrix (ptx_emit_matrix.c) */
void read_matrix_product(struct emit *e, struct sync *s);
void read_wmma(struct emit *e, struct sync *s);
void read_matrix_move(struct emit *e, struct sync *s);
void read_matrix_transpose(struct emit *e, struct sync *s);
