/* Integer instructions; emitted C, behind ptx_prelude.h. */
#pragma once

/* ---- integers ---- */
F int32_t ptx_add_sat_s32(int32_t a, int32_t b)
{
    int32_t r;
    return __builtin_add_overflow(a, b, &r) ? (a < 0 ? -2147483647 - 1 : 2147483647) : r;
}
F int32_t ptx_sub_sat_s32(int32_t a, int32_t b)
{
    int32_t r;
    return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? -2147483647 - 1 : 2147483647) : r;
}
/* Carries: *cc is the carry out, or the borrow out. */
#define CARRY(T, bits)                                                                                                 \
    F T ptx_addc_u##bits(T a, T b, uint32_t in, uint32_t *cc)                                                          \
    {                                                                                                                  \
        T s, r;                                                                                                        \
        uint32_t c = __builtin_add_overflow(a, b, &s);                                                                 \
        c |= __builtin_add_overflow(s, (T)in, &r);                                                                     \
        *cc = c;                                                                                                       \
        return r;                                                                                                      \
    }                                                                                                                  \
    F T ptx_subc_u##bits(T a, T b, uint32_t in, uint32_t *cc)                                                          \
    {                                                                                                                  \
        T s, r;                                                                                                        \
        uint32_t c = __builtin_sub_overflow(a, b, &s);                                                                 \
        c |= __builtin_sub_overflow(s, (T)in, &r);                                                                     \
        *cc = c;                                                                                                       \
        return r;                                                                                                      \
    }
CARRY(uint32_t, 32)
CARRY(uint64_t, 64)
/* Division by zero is not defined by PTX, and must not stop the process: all ones, remainder a. */
#define DIVIDE(T, n)                                                                                                   \
    F T ptx_div_##n(T a, T b)                                                                                          \
    {                                                                                                                  \
        return b ? (T)(a / b) : (T) ~(T)0;                                                                             \
    }                                                                                                                  \
    F T ptx_rem_##n(T a, T b)                                                                                          \
    {                                                                                                                  \
        return b ? (T)(a % b) : a;                                                                                     \
    }
#define DIVIDE_SIGNED(T, n)                                                                                            \
    F T ptx_div_##n(T a, T b)                                                                                          \
    {                                                                                                                  \
        return b == 0 ? (T)-1 : b == -1 ? (T)(0 - a) : (T)(a / b);                                                     \
    }                                                                                                                  \
    F T ptx_rem_##n(T a, T b)                                                                                          \
    {                                                                                                                  \
        return b == 0 ? a : b == -1 ? (T)0 : (T)(a % b);                                                               \
    }
DIVIDE(uint16_t, u16)
DIVIDE(uint32_t, u32)
DIVIDE(uint64_t, u64)
DIVIDE_SIGNED(int16_t, s16)
DIVIDE_SIGNED(int32_t, s32)
DIVIDE_SIGNED(int64_t, s64)
#define SHIFTS(T, S, bits)                                                                                             \
    F T ptx_shl_b##bits(T a, uint32_t n)                                                                               \
    {                                                                                                                  \
        return n >= bits ? (T)0 : (T)(a << n);                                                                         \
    }                                                                                                                  \
    F T ptx_shr_u##bits(T a, uint32_t n)                                                                               \
    {                                                                                                                  \
        return n >= bits ? (T)0 : (T)(a >> n);                                                                         \
    }                                                                                                                  \
    F S ptx_shr_s##bits(S a, uint32_t n)                                                                               \
    {                                                                                                                  \
        return (S)(a >> (n >= bits ? bits - 1 : n));                                                                   \
    }
SHIFTS(uint16_t, int16_t, 16)
SHIFTS(uint32_t, int32_t, 32) SHIFTS(uint64_t, int64_t, 64) F uint32_t ptx_mulhi_u32(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}
F int32_t ptx_mulhi_s32(int32_t a, int32_t b)
{
    return (int32_t)((int64_t)a * b >> 32);
}
F uint64_t ptx_mulhi_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
F int64_t ptx_mulhi_s64(int64_t a, int64_t b)
{
    return (int64_t)((__int128)a * b >> 64);
}
F uint16_t ptx_mulhi_u16(uint16_t a, uint16_t b)
{
    return (uint16_t)((uint32_t)a * b >> 16);
}
F int16_t ptx_mulhi_s16(int16_t a, int16_t b)
{
    return (int16_t)((int32_t)a * b >> 16);
}
F uint32_t ptx_mul24_u32(uint32_t a, uint32_t b, int shift)
{
    return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> shift);
}
F int32_t ptx_mul24_s32(int32_t a, int32_t b, int shift)
{
    return (int32_t)((int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8) >> shift);
}
F uint32_t ptx_clz_b32(uint32_t a)
{
    return a ? (uint32_t)__builtin_clz(a) : 32;
}
F uint32_t ptx_clz_b64(uint64_t a)
{
    return a ? (uint32_t)__builtin_clzll(a) : 64;
}
F uint32_t ptx_brev_b32(uint32_t a)
{
    a = __builtin_bswap32(a);
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    return (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
}
F uint64_t ptx_brev_b64(uint64_t a)
{
    return (uint64_t)ptx_brev_b32((uint32_t)a) << 32 | ptx_brev_b32((uint32_t)(a >> 32));
}
F uint32_t ptx_bfind_u32(uint32_t a)
{
    return a ? 31 - (uint32_t)__builtin_clz(a) : ~0u;
}
F uint32_t ptx_bfind_u64(uint64_t a)
{
    return a ? 63 - (uint32_t)__builtin_clzll(a) : ~0u;
}
F uint32_t ptx_bfind_s32(int32_t a)
{
    return ptx_bfind_u32((uint32_t)(a < 0 ? ~a : a));
}
F uint32_t ptx_bfind_s64(int64_t a)
{
    return ptx_bfind_u64((uint64_t)(a < 0 ? ~a : a));
}
#define FIELDS(T, S, bits)                                                                                             \
    F T ptx_bfe_u##bits(T a, uint32_t pos, uint32_t len)                                                               \
    {                                                                                                                  \
        pos &= 255;                                                                                                    \
        len &= 255;                                                                                                    \
        T v = pos >= bits ? 0 : a >> pos;                                                                              \
        return len >= bits ? v : v & (((T)1 << len) - 1);                                                              \
    }                                                                                                                  \
    F S ptx_bfe_s##bits(S a, uint32_t pos, uint32_t len)                                                               \
    {                                                                                                                  \
        pos &= 255;                                                                                                    \
        len &= 255;                                                                                                    \
        if (len == 0)                                                                                                  \
            return 0;                                                                                                  \
        S v = (S)(a >> (pos >= bits ? bits - 1 : pos));                                                                \
        if (pos + len >= bits)                                                                                         \
            return v;                                                                                                  \
        return (S)((S)((T)v << (bits - len)) >> (bits - len));                                                         \
    }                                                                                                                  \
    F T ptx_bfi_b##bits(T a, T b, uint32_t pos, uint32_t len)                                                          \
    {                                                                                                                  \
        pos &= 255;                                                                                                    \
        len &= 255;                                                                                                    \
        if (pos >= bits)                                                                                               \
            return b;                                                                                                  \
        T mask = (len >= bits ? ~(T)0 : ((T)1 << len) - 1) << pos;                                                     \
        return (b & ~mask) | (a << pos & mask);                                                                        \
    }
FIELDS(uint32_t, int32_t, 32) FIELDS(uint64_t, int64_t, 64) F uint32_t ptx_bmsk(uint32_t pos, uint32_t len, _Bool clamp)
{
    if (clamp) {
        pos = pos > 32 ? 32 : pos;
        len = len > 32 ? 32 : len;
    } else {
        pos &= 31;
        len &= 31;
    }
    uint64_t mask = ((uint64_t)1 << len) - 1;
    return (uint32_t)(mask << pos);
}
F uint32_t ptx_szext_u32(uint32_t a, uint32_t n, _Bool clamp)
{
    n = clamp ? n : n & 31;
    return n >= 32 ? a : a & ((1u << n) - 1);
}
F int32_t ptx_szext_s32(int32_t a, uint32_t n, _Bool clamp)
{
    n = clamp ? n : n & 31;
    return n >= 32 ? a : n == 0 ? 0 : (int32_t)((uint32_t)a << (32 - n)) >> (32 - n);
}
F uint32_t ptx_fns(uint32_t mask, uint32_t base, int32_t n)
{
    base &= 31;
    int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
    if (n == 0)
        return mask >> base & 1 ? base : ~0u;
    for (int i = (int)base; i >= 0 && i < 32; i += step)
        if ((mask >> i & 1) && --left == 0)
            return (uint32_t)i;
    return ~0u;
}
F uint32_t ptx_shf_l(uint32_t a, uint32_t b, uint32_t n)
{
    return (uint32_t)(((uint64_t)b << 32 | a) << n >> 32);
}
F uint32_t ptx_shf_r(uint32_t a, uint32_t b, uint32_t n)
{
    return n >= 32 ? b : (uint32_t)(((uint64_t)b << 32 | a) >> n);
}
F uint32_t ptx_prmt_byte(uint64_t v, uint32_t s)
{
    uint32_t b = (uint32_t)(v >> (8 * (s & 7))) & 0xff;
    return s & 8 ? (b >> 7 ? 0xff : 0) : b;
}
F uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t s)
{
    uint64_t v = (uint64_t)b << 32 | a;
    return ptx_prmt_byte(v, s) | ptx_prmt_byte(v, s >> 4) << 8 | ptx_prmt_byte(v, s >> 8) << 16 |
           ptx_prmt_byte(v, s >> 12) << 24;
}
F uint32_t ptx_prmt_mode(uint32_t a, uint32_t b, uint32_t c, const uint16_t table[4])
{
    return ptx_prmt(a, b, table[c & 3]);
}
F uint32_t ptx_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t t)
{
    uint32_t r = 0;
    if (t & 1)
        r |= ~a & ~b & ~c;
    if (t & 2)
        r |= ~a & ~b & c;
    if (t & 4)
        r |= ~a & b & ~c;
    if (t & 8)
        r |= ~a & b & c;
    if (t & 16)
        r |= a & ~b & ~c;
    if (t & 32)
        r |= a & ~b & c;
    if (t & 64)
        r |= a & b & ~c;
    if (t & 128)
        r |= a & b & c;
    return r;
}
F uint32_t ptx_dp4a(uint32_t a, uint32_t b, uint32_t c, _Bool sa, _Bool sb)
{
    for (int i = 0; i < 32; i += 8) {
        int32_t x = (int32_t)(a >> i & 0xff), y = (int32_t)(b >> i & 0xff);
        c += (uint32_t)((sa ? (int8_t)x : x) * (sb ? (int8_t)y : y));
    }
    return c;
}
#define PAIR16(name, T, expression)                                                                                    \
    F uint32_t ptx_##name(uint32_t a, uint32_t b)                                                                      \
    {                                                                                                                  \
        uint32_t r = 0;                                                                                                \
        for (int i = 0; i < 32; i += 16) {                                                                             \
            T x = (T)(a >> i), y = (T)(b >> i);                                                                        \
            r |= (uint32_t)(uint16_t)(expression) << i;                                                                \
        }                                                                                                              \
        return r;                                                                                                      \
    }
PAIR16(add_u16x2, uint16_t, x + y)
PAIR16(add_s16x2, int16_t, x + y)
PAIR16(min_u16x2, uint16_t, x < y ? x : y)
PAIR16(min_s16x2, int16_t, x < y ? x : y)
PAIR16(max_u16x2, uint16_t, x > y ? x : y)
PAIR16(max_s16x2, int16_t, x > y ? x : y)
F uint32_t ptx_vabsdiff4(uint32_t a, uint32_t b, uint32_t c, _Bool sa, _Bool sb, _Bool adds)
{
    uint32_t bytes = 0;
    for (int i = 0; i < 32; i += 8) {
        int32_t x = (int32_t)(a >> i & 0xff), y = (int32_t)(b >> i & 0xff);
        int32_t d = (sa ? (int8_t)x : x) - (sb ? (int8_t)y : y);
        uint32_t magnitude = (uint32_t)(d < 0 ? -d : d);
        c += magnitude;
        bytes |= (magnitude & 0xff) << i;
    }
    return adds ? c : bytes;
}
F uint32_t ptx_dp2a(uint32_t a, uint32_t b, uint32_t c, _Bool sa, _Bool sb, _Bool high)
{
    for (int i = 0; i < 2; i++) {
        int32_t x = (int32_t)(a >> (16 * i) & 0xffff), y = (int32_t)(b >> (8 * i + (high ? 16 : 0)) & 0xff);
        c += (uint32_t)((sa ? (int16_t)x : x) * (sb ? (int8_t)y : y));
    }
    return c;
}

/* Asynchronous copies are done at once: nobody may look before they are waited for. The rest is filled with zeros. */
F void ptx_copy(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t valid)
{
    valid = valid < bytes ? valid : bytes;
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = i < valid ? from[i] : 0;
}

F void ptx_bulk_copy(struct ptx_block *B, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (((uint64_t)to | (uint64_t)from | bytes) & 15)
        B->fault(B, 716, "cp.async.bulk: address or size is no multiple of 16");
    __builtin_memmove(to, from, bytes);
}

/* A load that others write to may stand in a loop which waits for them. */
F void ptx_relax(struct ptx_block *B)
{
    if ((++B->strong_loads & 63) == 0)
        B->relax();
}

/* The cluster is this block. */
F uint64_t ptx_mapa(struct ptx_block *B, uint64_t address, uint32_t rank)
{
    if (rank != 0)
        B->fault(B, 719, "mapa: no such block in the cluster");
    return address;
}
