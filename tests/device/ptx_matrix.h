/* Matrix operations of a warp, for emitted C that uses them; behind ptx_prelude.h. A tile is spread over the registers
 * of 32 lanes; word j of lane l is WORDS(j)[l]. All element types are exact in double. */
#pragma once

enum ptx_element {
    PTX_F16_,
    PTX_BF16_,
    PTX_TF32_,
    PTX_F32_,
    PTX_F64_,
    PTX_S8_,
    PTX_U8_,
    PTX_S32_,
    PTX_E4M3_,
    PTX_E5M2_
};
enum ptx_role { PTX_ROLE_A, PTX_ROLE_B, PTX_ROLE_C, PTX_ROLE_OPAQUE };

struct ptx_tile {
    enum ptx_element type;
    enum ptx_role role;
    uint32_t registers, rows, columns;
};

#define WORDS(j) (B->exchange_words + (uint64_t)(j)*B->stride + first)

SLOW uint32_t ptx_element_bits(enum ptx_element type)
{
    static const uint32_t bits[] = {16, 16, 32, 32, 64, 8, 8, 32, 8, 8};
    return bits[type];
}

SLOW double ptx_small_value(uint32_t b, int mantissa, int bias)
{
    uint32_t exponent = (b & 0x7f) >> mantissa, fraction = b & ((1u << mantissa) - 1);
    double value = exponent ? (double)(fraction + (1u << mantissa)) : (double)fraction;
    for (int e = (int)(exponent ? exponent : 1) - bias - mantissa; e != 0; e += e < 0 ? 1 : -1)
        value = e < 0 ? value * 0.5 : value * 2.0;
    if (mantissa == 3 ? (b & 0x7f) == 0x7f : exponent == 31)
        value = mantissa == 2 && fraction == 0 ? (double)ptx_f32(0x7f800000u) : NAN64;
    return b & 0x80 ? -value : value;
}

SLOW double ptx_decode(enum ptx_element type, uint64_t bits)
{
    switch (type) {
    case PTX_F16_:
        return (double)ptx_half_value((uint16_t)bits);
    case PTX_BF16_:
        return (double)ptx_bf16_value((uint16_t)bits);
    case PTX_TF32_:
        return (double)ptx_f32((uint32_t)bits & 0xffffe000u);
    case PTX_F32_:
        return (double)ptx_f32((uint32_t)bits);
    case PTX_F64_:
        return ptx_f64(bits);
    case PTX_S8_:
        return (double)(int8_t)bits;
    case PTX_U8_:
        return (double)(uint8_t)bits;
    case PTX_S32_:
        return (double)(int32_t)bits;
    case PTX_E4M3_:
        return ptx_small_value((uint32_t)bits, 3, 7);
    default:
        return ptx_small_value((uint32_t)bits, 2, 15);
    }
}

/* Integers wrap, or stop at their bounds where `saturates`. */
SLOW uint64_t ptx_encode(enum ptx_element type, double value, _Bool saturates)
{
    switch (type) {
    case PTX_F16_:
        return ptx_half_f64(value);
    case PTX_BF16_:
        return ptx_bf16_f64(value);
    case PTX_F64_:
        return ptx_u64(value);
    case PTX_S32_:
        if (saturates)
            value = value > 2147483647.0 ? 2147483647.0 : value < -2147483648.0 ? -2147483648.0 : value;
        return (uint32_t)(int64_t)value;
    default:
        return ptx_u32((float)value);
    }
}

/* Which element of the tile (row * columns + column) is element `index` of the lane. */
SLOW uint32_t ptx_place_of(const struct ptx_tile *tile, uint32_t lane, uint32_t index)
{
    uint32_t bits = ptx_element_bits(tile->type), per = bits >= 32 ? 1 : 32 / bits;
    uint32_t reg = index / per, part = index % per, group = lane >> 2, in_group = lane & 3, row, column;
    switch (tile->role) {
    case PTX_ROLE_A:
        row = group + (tile->rows == 16 ? (reg & 1) * 8 : 0);
        column = in_group * per + part + (tile->rows == 16 ? reg >> 1 : reg) * 4 * per;
        break;
    case PTX_ROLE_B:
        row = in_group * per + part + reg * 4 * per;
        column = group;
        break;
    case PTX_ROLE_C:
        row = group + index / 2 * 8;
        column = in_group * 2 + index % 2;
        break;
    default: /* ours to choose: in order, again from the start where lanes have more than the tile */
        return (lane * tile->registers * per + index) % (tile->rows * tile->columns);
    }
    return row * tile->columns + column;
}

SLOW void ptx_gather(struct ptx_block *B, uint32_t first, uint32_t word, const struct ptx_tile *tile, double *out)
{
    uint32_t bits = ptx_element_bits(tile->type), per = bits >= 32 ? 1 : 32 / bits;
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < tile->registers * per; i++) {
            uint64_t value =
                bits == 64 ? (uint64_t)WORDS(word + 2 * i + 1)[lane] << 32 | WORDS(word + 2 * i)[lane]
                           : WORDS(word + i / per)[lane] >> (i % per * bits) & (bits == 32 ? ~0u : (1u << bits) - 1);
            out[ptx_place_of(tile, lane, i)] = ptx_decode(tile->type, value);
        }
    }
}

/* d[register or half of a double][lane] */
SLOW void ptx_scatter(uint32_t (*d)[32], const struct ptx_tile *tile, const double *in, _Bool saturates)
{
    uint32_t bits = ptx_element_bits(tile->type), per = bits >= 32 ? 1 : 32 / bits;
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < tile->registers * per; i++) {
            uint64_t value = ptx_encode(tile->type, in[ptx_place_of(tile, lane, i)], saturates);
            if (bits == 64) {
                d[2 * i][lane] = (uint32_t)value;
                d[2 * i + 1][lane] = (uint32_t)(value >> 32);
            } else if (i % per == 0) {
                d[i / per][lane] = (uint32_t)value;
            } else {
                d[i / per][lane] |= (uint32_t)value << (i % per * bits);
            }
        }
    }
}

SLOW uint32_t ptx_tile_words(const struct ptx_tile *tile)
{
    return tile->registers * (ptx_element_bits(tile->type) == 64 ? 2 : 1);
}

/* D = A B + C. Products and sums in double, rounded once to D's type: within the accuracy that the manual asks for. */
SLOW void ptx_matrix_product(struct ptx_block *B, uint32_t first, struct ptx_tile a, struct ptx_tile b,
                             struct ptx_tile c, struct ptx_tile d, _Bool saturates, uint32_t (*out)[32])
{
    double left[32 * 32], right[32 * 32], sum[32 * 32];
    ptx_gather(B, first, 0, &a, left);
    ptx_gather(B, first, ptx_tile_words(&a), &b, right);
    ptx_gather(B, first, ptx_tile_words(&a) + ptx_tile_words(&b), &c, sum);
    for (uint32_t i = 0; i < a.rows; i++)
        for (uint32_t j = 0; j < b.columns; j++)
            for (uint32_t k = 0; k < a.columns; k++)
                sum[i * b.columns + j] =
                    __builtin_fma(left[i * a.columns + k], right[k * b.columns + j], sum[i * b.columns + j]);
    ptx_scatter(out, &d, sum, saturates);
}

SLOW uint8_t *ptx_lane_address(struct ptx_block *B, uint32_t first, uint32_t lane)
{
    return (uint8_t *)((uint64_t)WORDS(1)[lane] << 32 | WORDS(0)[lane]);
}

/* Rows of 8 halves: that of matrix m, row r is where lane 8 m + r points. */
SLOW void ptx_matrix_load(struct ptx_block *B, uint32_t first, uint32_t count, _Bool transposed, uint32_t (*out)[32])
{
    for (uint32_t m = 0; m < count; m++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t line = lane >> 2, pair = 2 * (lane & 3), halves[2];
            for (uint32_t h = 0; h < 2; h++) {
                uint32_t row = transposed ? pair + h : line, column = transposed ? line : pair + h;
                halves[h] = LOAD(uint16_t, ptx_lane_address(B, first, 8 * m + row) + 2 * column);
            }
            out[m][lane] = halves[1] << 16 | halves[0];
        }
    }
}

SLOW void ptx_matrix_store(struct ptx_block *B, uint32_t first, uint32_t count, _Bool transposed)
{
    for (uint32_t m = 0; m < count; m++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t line = lane >> 2, pair = 2 * (lane & 3), value = WORDS(2 + m)[lane];
            for (uint32_t h = 0; h < 2; h++) {
                uint32_t row = transposed ? pair + h : line, column = transposed ? line : pair + h;
                STORE(uint16_t, ptx_lane_address(B, first, 8 * m + row) + 2 * column, (uint16_t)(value >> (16 * h)));
            }
        }
    }
}

/* movmatrix: word 0 holds two halves of a row. */
SLOW void ptx_matrix_transpose(struct ptx_block *B, uint32_t first, uint32_t (*out)[32])
{
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t column = lane >> 2, row = 2 * (lane & 3), halves[2];
        for (uint32_t h = 0; h < 2; h++)
            halves[h] = WORDS(0)[(row + h) * 4 + column / 2] >> (16 * (column & 1)) & 0xffff;
        out[0][lane] = halves[1] << 16 | halves[0];
    }
}

SLOW uint64_t ptx_matrix_at(const struct ptx_tile *tile, uint32_t place, _Bool by_column, uint32_t stride)
{
    uint32_t row = place / tile->columns, column = place % tile->columns;
    return ((uint64_t)(by_column ? column : row) * stride + (by_column ? row : column)) *
           (ptx_element_bits(tile->type) / 8);
}

/* wmma.load: words 0 and 1 are the address, 2 the stride; every lane has the same. */
SLOW void ptx_matrix_read(struct ptx_block *B, uint32_t first, struct ptx_tile tile, _Bool by_column,
                          uint32_t (*out)[32])
{
    uint32_t bits = ptx_element_bits(tile.type), per = bits >= 32 ? 1 : 32 / bits;
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < tile.registers * per; i++) {
            const uint8_t *at = ptx_lane_address(B, first, 0) +
                                ptx_matrix_at(&tile, ptx_place_of(&tile, lane, i), by_column, WORDS(2)[0]);
            if (bits == 64) {
                out[2 * i][lane] = LOAD(uint32_t, at);
                out[2 * i + 1][lane] = LOAD(uint32_t, at + 4);
            } else if (bits == 32) {
                out[i][lane] = LOAD(uint32_t, at);
            } else {
                uint32_t value = bits == 16 ? LOAD(uint16_t, at) : LOAD(uint8_t, at);
                out[i / per][lane] = (i % per ? out[i / per][lane] : 0) | value << (i % per * bits);
            }
        }
    }
}

/* wmma.store: as above, the registers from word 3 on. */
SLOW void ptx_matrix_write(struct ptx_block *B, uint32_t first, struct ptx_tile tile, _Bool by_column)
{
    uint32_t bits = ptx_element_bits(tile.type), per = bits >= 32 ? 1 : 32 / bits;
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < tile.registers * per; i++) {
            uint8_t *at = ptx_lane_address(B, first, 0) +
                          ptx_matrix_at(&tile, ptx_place_of(&tile, lane, i), by_column, WORDS(2)[0]);
            if (bits == 64) {
                STORE(uint32_t, at, WORDS(3 + 2 * i)[lane]);
                STORE(uint32_t, at + 4, WORDS(4 + 2 * i)[lane]);
            } else if (bits == 32) {
                STORE(uint32_t, at, WORDS(3 + i)[lane]);
            } else {
                STORE(uint16_t, at, (uint16_t)(WORDS(3 + i / per)[lane] >> (i % per * bits)));
            }
        }
    }
}
