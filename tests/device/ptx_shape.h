/* How a register's value varies over a row of threads (same tid.y and tid.z): not at all, by a constant step per
 * thread, or in any way. Known only for registers that one pure, unguarded instruction of the entry sets from others
 * that are known: those can be computed once ahead of the loop over the threads, wherever that instruction stands.
 *
 * Widening a 32-bit value keeps its step only as long as it does not wrap, and comparing it with a uniform value is
 * uniform only as long as the answer stays the same: the loop is cut where that ends (the emitted limits). */
#pragma once
#include "tests/device/ptx.h"

enum ptx_shape_kind { PTX_VARYING, PTX_UNIFORM, PTX_AFFINE };

struct ptx_shape {
    enum ptx_shape_kind kind;
    int64_t step;  /* AFFINE: what tid.x + 1 adds; never 0 */
    uint32_t insn; /* that sets it; UINT32_MAX where VARYING */
};

struct ptx_shape *ptx_find_shapes(struct ptx_arena *arena, const struct ptx_function *function);

/* The shape of an operand as a value; constants are uniform. */
struct ptx_shape ptx_operand_shape(const struct ptx_shape *shapes, const struct ptx_operand *operand);
bool ptx_insn_has_modifier(const struct ptx_insn *insn, const char *modifier);
