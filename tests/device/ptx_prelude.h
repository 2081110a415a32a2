/* What PTX instructions do that C has no operator for. Head of every emitted C file, behind ptx_run.h.
 * Compiled with -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fwrapv. */
#pragma once

#define F static inline __attribute__((always_inline, unused))
#define SLOW static __attribute__((noinline, unused))

/* ---- bits ---- */
F float ptx_f32(uint32_t b) { float f; __builtin_memcpy(&f, &b, 4); return f; }
F uint32_t ptx_u32(float f) { uint32_t b; __builtin_memcpy(&b, &f, 4); return b; }
F double ptx_f64(uint64_t b) { double f; __builtin_memcpy(&f, &b, 8); return f; }
F uint64_t ptx_u64(double f) { uint64_t b; __builtin_memcpy(&b, &f, 8); return b; }

#define MEM(T, bits) typedef T mem_##T __attribute__((may_alias, aligned(1)));
MEM(uint8_t, 8) MEM(uint16_t, 16) MEM(uint32_t, 32) MEM(uint64_t, 64)
MEM(int8_t, 8) MEM(int16_t, 16) MEM(int32_t, 32) MEM(int64_t, 64) MEM(float, 32) MEM(double, 64)
#define LOAD(T, p) (*(const mem_##T *)(p))
#define STORE(T, p, v) (*(mem_##T *)(p) = (v))
#define LOAD_VOLATILE(T, p) (*(const volatile mem_##T *)(p))
#define STORE_VOLATILE(T, p, v) (*(volatile mem_##T *)(p) = (v))
#define SLOT(T, at) ((T *)(B->slots + (uint64_t)(at) * B->stride))

/* ---- float: flush, saturate, compare ---- */
#define NAN32 ptx_f32(0x7fffffffu)
#define NAN64 ptx_f64(0x7fffffffffffffffu)
F float ptx_ftz_f32(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
/* One condition per statement, here and below: so that loops over threads can be vectorised. */
F float ptx_sat_f32(float x) { float y = x < 1.0f ? x : 1.0f; return x > 0.0f ? y : 0.0f; }
F double ptx_sat_f64(double x) { double y = x < 1.0 ? x : 1.0; return x > 0.0 ? y : 0.0; }
F float ptx_min_f32(float a, float b)
{
    float m = a < b ? a : b;
    m = a == b ? ptx_f32(ptx_u32(a) | ptx_u32(b)) : m;
    m = b != b ? a : m;
    m = a != a ? b : m;
    return m != m ? NAN32 : m;
}
F float ptx_max_f32(float a, float b)
{
    float m = a > b ? a : b;
    m = a == b ? ptx_f32(ptx_u32(a) & ptx_u32(b)) : m;
    m = b != b ? a : m;
    m = a != a ? b : m;
    return m != m ? NAN32 : m;
}
F double ptx_min_f64(double a, double b)
{
    double m = a < b ? a : b;
    m = a == b ? ptx_f64(ptx_u64(a) | ptx_u64(b)) : m;
    m = b != b ? a : m;
    m = a != a ? b : m;
    return m != m ? NAN64 : m;
}
F double ptx_max_f64(double a, double b)
{
    double m = a > b ? a : b;
    m = a == b ? ptx_f64(ptx_u64(a) & ptx_u64(b)) : m;
    m = b != b ? a : m;
    m = a != a ? b : m;
    return m != m ? NAN64 : m;
}
F float ptx_min_nan_f32(float a, float b) { float m = ptx_min_f32(a, b); return (a != a) | (b != b) ? NAN32 : m; }
F float ptx_max_nan_f32(float a, float b) { float m = ptx_max_f32(a, b); return (a != a) | (b != b) ? NAN32 : m; }
F float ptx_abs_f32(float a) { return ptx_f32(ptx_u32(a) & 0x7fffffffu); }
F double ptx_abs_f64(double a) { return ptx_f64(ptx_u64(a) & 0x7fffffffffffffffu); }
F float ptx_neg_f32(float a) { return ptx_f32(ptx_u32(a) ^ 0x80000000u); }
F double ptx_neg_f64(double a) { return ptx_f64(ptx_u64(a) ^ 0x8000000000000000u); }
F float ptx_copysign_f32(float s, float m) { return ptx_f32((ptx_u32(s) & 0x80000000u) | (ptx_u32(m) & 0x7fffffffu)); }
F double ptx_copysign_f64(double s, double m)
{
    return ptx_f64((ptx_u64(s) & 0x8000000000000000u) | (ptx_u64(m) & 0x7fffffffffffffffu));
}
F _Bool ptx_testp_finite_f32(float a) { return (ptx_u32(a) & 0x7f800000u) != 0x7f800000u; }
F _Bool ptx_testp_infinite_f32(float a) { return (ptx_u32(a) & 0x7fffffffu) == 0x7f800000u; }
F _Bool ptx_testp_number_f32(float a) { return (ptx_u32(a) & 0x7fffffffu) <= 0x7f800000u; }
F _Bool ptx_testp_notanumber_f32(float a) { return !ptx_testp_number_f32(a); }
F _Bool ptx_testp_subnormal_f32(float a) { return (ptx_u32(a) & 0x7f800000u) == 0 && (ptx_u32(a) & 0x7fffffu); }
F _Bool ptx_testp_normal_f32(float a) { return (ptx_u32(a) & 0x7f800000u) && ptx_testp_finite_f32(a); }
F _Bool ptx_testp_finite_f64(double a) { return (ptx_u64(a) >> 52 & 0x7ff) != 0x7ff; }
F _Bool ptx_testp_infinite_f64(double a) { return ptx_u64(a) << 1 == 0x7ffull << 53; }
F _Bool ptx_testp_number_f64(double a) { return ptx_u64(a) << 1 <= 0x7ffull << 53; }
F _Bool ptx_testp_notanumber_f64(double a) { return !ptx_testp_number_f64(a); }
F _Bool ptx_testp_subnormal_f64(double a) { return (ptx_u64(a) >> 52 & 0x7ff) == 0 && ptx_u64(a) << 12; }
F _Bool ptx_testp_normal_f64(double a) { return (ptx_u64(a) >> 52 & 0x7ff) && ptx_testp_finite_f64(a); }

/* ---- float: directed rounding ---- */
F float ptx_down_f32(float x)
{
    uint32_t b = ptx_u32(x);
    return x > 0 ? ptx_f32(b - 1) : x == 0 ? ptx_f32(0x80000001u) : x == x && b != 0xff800000u ? ptx_f32(b + 1) : x;
}
F float ptx_up_f32(float x) { return -ptx_down_f32(-x); }
F double ptx_down_f64(double x)
{
    uint64_t b = ptx_u64(x);
    return x > 0 ? ptx_f64(b - 1) : x == 0 ? ptx_f64(0x8000000000000001u) : x == x && b != 0xfff0000000000000u ? ptx_f64(b + 1) : x;
}
F double ptx_up_f64(double x) { return -ptx_down_f64(-x); }

/* The value d + e, where |e| is at most half a unit in the last place of d, rounded once. What is left of it beyond its
 * nearest float has the exact sign, as d minus that float is exact. */
F double ptx_rest(double d, double e, float f) { return (d - (double)f) + e; }
F float ptx_round_rm(double d, double e)
{
    float f = (float)d;
    uint32_t b = ptx_u32(f), below = f > 0.0f ? b - 1 : b + 1;
    below = f == 0.0f ? 0x80000001u : below;
    return ptx_rest(d, e, f) < 0.0 ? ptx_f32(below) : f;
}
F float ptx_round_rp(double d, double e)
{
    float f = (float)d;
    uint32_t b = ptx_u32(f), above = f < 0.0f ? b - 1 : b + 1;
    above = f == 0.0f ? 1 : above;
    return ptx_rest(d, e, f) > 0.0 ? ptx_f32(above) : f;
}
F float ptx_round_rz(double d, double e)
{
    float f = (float)d;
    return ptx_rest(d, e, f) * __builtin_copysign(1.0, (double)f) < 0.0 ? ptx_f32(ptx_u32(f) - 1) : f;
}
/* What rounding lost in s = a + b (exact, by Knuth); 0 where s is not finite. */
F double ptx_lost(double a, double b, double s)
{
    double v = s - a, e = (a - (s - v)) + (b - v);
    return e == e ? e : 0.0;
}
/* p + c with p exact. An exact zero from opposite signs is -0 when rounding down, which the negated sum gives. */
#define DIRECTED(mode, sum) \
F float ptx_sum_##mode(double p, double c) \
{ \
    double s = sum; \
    return ptx_round_##mode(s, ptx_lost(p, c, s)); \
} \
F float ptx_add_f32_##mode(float a, float b) { return ptx_sum_##mode((double)a, (double)b); } \
F float ptx_sub_f32_##mode(float a, float b) { return ptx_sum_##mode((double)a, -(double)b); } \
F float ptx_mul_f32_##mode(float a, float b) { return ptx_round_##mode((double)a * (double)b, 0.0); } \
F float ptx_fma_f32_##mode(float a, float b, float c) { return ptx_sum_##mode((double)a * (double)b, (double)c); } \
F float ptx_cvt_f64_f32_##mode(double a) { return ptx_round_##mode(a, 0.0); }
DIRECTED(rm, -(-p - c))
DIRECTED(rp, p + c)
DIRECTED(rz, p + c)

extern int fesetround(int);
#if defined __x86_64__
enum { PTX_RN = 0, PTX_RM = 0x400, PTX_RP = 0x800, PTX_RZ = 0xc00 };
#elif defined __aarch64__
enum { PTX_RN = 0, PTX_RP = 0x400000, PTX_RM = 0x800000, PTX_RZ = 0xc00000 };
#endif
/* The volatile reads and writes keep the operation between the two changes of mode. */
#define IN_MODE(T, mode, expression) \
    fesetround(mode); volatile T r_ = (expression); fesetround(PTX_RN); return r_;
#define SLOWLY(mode, MODE) \
SLOW double ptx_add_f64_##mode(double x, double y) { volatile double a = x, b = y; IN_MODE(double, MODE, a + b) } \
SLOW double ptx_sub_f64_##mode(double x, double y) { volatile double a = x, b = y; IN_MODE(double, MODE, a - b) } \
SLOW double ptx_mul_f64_##mode(double x, double y) { volatile double a = x, b = y; IN_MODE(double, MODE, a * b) } \
SLOW double ptx_div_f64_##mode(double x, double y) { volatile double a = x, b = y; IN_MODE(double, MODE, a / b) } \
SLOW double ptx_sqrt_f64_##mode(double x) { volatile double a = x; IN_MODE(double, MODE, __builtin_sqrt(a)) } \
SLOW double ptx_fma_f64_##mode(double x, double y, double z) \
{ volatile double a = x, b = y, c = z; IN_MODE(double, MODE, __builtin_fma(a, b, c)) } \
SLOW float ptx_div_f32_##mode(float x, float y) { volatile float a = x, b = y; IN_MODE(float, MODE, a / b) } \
SLOW float ptx_sqrt_f32_##mode(float x) { volatile float a = x; IN_MODE(float, MODE, __builtin_sqrtf(a)) }
SLOWLY(rm, PTX_RM)
SLOWLY(rp, PTX_RP)
SLOWLY(rz, PTX_RZ)

/* ---- float: approximations; each within the error that the PTX manual gives ---- */
/* 2^x: x = i + f, |f| <= 1/2, a polynomial of degree 6 for 2^f (relative error 5e-9), scaled in two steps. */
F float ptx_ex2_f32(float x)
{
    float c = x > -160.0f ? x : -160.0f;
    c = c < 140.0f ? c : 140.0f;
    float r = __builtin_rintf(c);
    float f = c - r;
    float s = 0x1.4413896p-13f;
    s = __builtin_fmaf(s, f, 0x1.5f0890p-10f);
    s = __builtin_fmaf(s, f, 0x1.3b2a53p-7f);
    s = __builtin_fmaf(s, f, 0x1.c6af6cp-5f);
    s = __builtin_fmaf(s, f, 0x1.ebfbe0p-3f);
    s = __builtin_fmaf(s, f, 0x1.62e430p-1f);
    s = __builtin_fmaf(s, f, 1.0f);
    int32_t i = (int32_t)r, half = i >> 1;
    float y = s * ptx_f32((uint32_t)(half + 127) << 23) * ptx_f32((uint32_t)(i - half + 127) << 23);
    return x == x ? y : NAN32;
}
/* log2: x = 2^e m, m in [sqrt 1/2, sqrt 2), 2 atanh((m - 1)/(m + 1)) / ln 2 in double. */
F float ptx_lg2_f32(float x)
{
    _Bool small = x < 0x1p-126f;
    uint32_t b = ptx_u32(small ? x * 0x1p24f : x);
    uint32_t k = b - 0x3f3504f3u;
    int32_t e = (int32_t)k >> 23;
    double m = (double)ptx_f32((k & 0x7fffffu) + 0x3f3504f3u);
    double s = (m - 1.0) / (m + 1.0), q = s * s;
    double p = 1.0 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q * (1.0 / 13))))));
    float y = (float)((double)(e - (small ? 24 : 0)) + s * p * 2.8853900817779268);
    y = x == 0.0f ? ptx_f32(0xff800000u) : y;
    y = x == ptx_f32(0x7f800000u) ? x : y;
    return x >= 0.0f ? y : NAN32;
}
/* x = k pi/2 + r, |r| <= pi/4. */
F double ptx_quarter(float x, double *r)
{
    double k = __builtin_rint((double)x * 0.63661977236758134308);
    *r = __builtin_fma(k, -1.57079632679489655800, (double)x);
    *r = __builtin_fma(k, -6.12323399573676603587e-17, *r);
    *r = __builtin_fabs(*r) < 1.0 ? *r : 0.0;   /* an argument so large that nothing is left of its phase */
    return k - 4.0 * __builtin_floor(k * 0.25);
}
F double ptx_sine(double r)
{
    double q = r * r;
    return r * (1.0 + q * (-1.0 / 6 + q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 - q * (1.0 / 39916800))))));
}
F double ptx_cosine(double r)
{
    double q = r * r;
    return 1.0 + q * (-0.5 + q * (1.0 / 24 + q * (-1.0 / 720 + q * (1.0 / 40320 - q * (1.0 / 3628800 - q * (1.0 / 479001600))))));
}
F float ptx_turned(double r, double k)
{
    double y = k == 1.0 || k == 3.0 ? ptx_cosine(r) : ptx_sine(r);
    return (float)(k >= 2.0 ? -y : y);
}
F float ptx_sin_f32(float x) { double r, k = ptx_quarter(x, &r); return x == 0.0f ? x : x - x == 0.0f ? ptx_turned(r, k) : NAN32; }
F float ptx_cos_f32(float x)
{
    double r, k = ptx_quarter(x, &r);
    return x - x == 0.0f ? ptx_turned(r, k == 3.0 ? 0.0 : k + 1.0) : NAN32;
}
F float ptx_tanh_f32(float x)
{
    float a = __builtin_fabsf(x);
    float big = 1.0f - 2.0f / (ptx_ex2_f32(a * 2.8853900817779268f) + 1.0f);
    float small = a - a * a * a * (1.0f / 3);
    float y = __builtin_copysignf(a < 0.03f ? small : big, x);
    return x == x ? y : NAN32;
}
F float ptx_rsqrt_f32(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
F double ptx_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }
/* Only the upper 32 bits of operand and result count. */
F double ptx_upper(double x) { return ptx_f64(ptx_u64(x) & 0xffffffff00000000u); }
F double ptx_flush_f64(double x) { return __builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(0.0, x) : x; }
F double ptx_rcp_ftz_f64(double x) { return x == x ? ptx_upper(ptx_flush_f64(1.0 / ptx_flush_f64(ptx_upper(x)))) : NAN64; }
F double ptx_rsqrt_ftz_f64(double x) { return x == x ? ptx_upper(1.0 / __builtin_sqrt(ptx_flush_f64(ptx_upper(x)))) : NAN64; }
/* Beyond 2^126 the divisor's reciprocal vanishes, says the manual. */
F float ptx_div_approx_f32(float a, float b)
{
    float r = a / b, y = __builtin_fabsf(b);
    float far = __builtin_fabsf(a) < ptx_f32(0x7f800000u) ? ptx_f32((ptx_u32(a) ^ ptx_u32(b)) & 0x80000000u) : NAN32;
    return (y > 0x1p126f) & (y < ptx_f32(0x7f800000u)) ? far : r;
}

/* ---- conversions ---- */
#define ROUNDING(T, s) \
F T ptx_rni_##T(T x) { return __builtin_rint##s(x); } \
F T ptx_rzi_##T(T x) { return __builtin_trunc##s(x); } \
F T ptx_rmi_##T(T x) { return __builtin_floor##s(x); } \
F T ptx_rpi_##T(T x) { return __builtin_ceil##s(x); }
ROUNDING(float, f)
ROUNDING(double, )

/* x is integral or NaN; out of range goes to the nearest bound, NaN to 0 (64-bit: 2^63, as the hardware gives). */
#define TO_INTEGER(F_, I, low, over, high, nan) \
F I ptx_##F_##_to_##I(F_ x) \
{ \
    I v = x < (F_)(over) ? (I)x : (I)(high); \
    v = x < (F_)(low) ? (I)(low) : v; \
    return x != x ? (I)(nan) : v; \
}
#define TO_INTEGERS(F_) \
TO_INTEGER(F_, int8_t, -128, 128, 127, 0) TO_INTEGER(F_, uint8_t, 0, 256, 255, 0) \
TO_INTEGER(F_, int16_t, -32768, 32768, 32767, 0) TO_INTEGER(F_, uint16_t, 0, 65536, 65535, 0) \
TO_INTEGER(F_, int32_t, -2147483647 - 1, 2147483648.0, 2147483647, 0) TO_INTEGER(F_, uint32_t, 0, 4294967296.0, 4294967295u, 0) \
TO_INTEGER(F_, int64_t, -9223372036854775807ll - 1, 9223372036854775808.0, 9223372036854775807ll, 0x8000000000000000u) \
TO_INTEGER(F_, uint64_t, 0, 18446744073709551616.0, 18446744073709551615ull, 0x8000000000000000u)
TO_INTEGERS(float)
TO_INTEGERS(double)

/* |v| cut to the bits that fit, then one step away from zero where the mode asks for it. */
#define FROM_INTEGER(F_, bits, up, mode, away) \
F F_ ptx_from_u64_##F_##_##mode(uint64_t v, _Bool negative) \
{ \
    int extra = v ? 64 - bits - __builtin_clzll(v) : 0; \
    uint64_t cut = extra > 0 ? v >> extra << extra : v; \
    F_ f = (F_)cut; \
    f = cut != v && (away) ? up(f) : f; \
    return negative ? -f : f; \
}
#define FROM_INTEGERS(F_, bits, up) \
FROM_INTEGER(F_, bits, up, rz, 0) FROM_INTEGER(F_, bits, up, rm, negative) FROM_INTEGER(F_, bits, up, rp, !negative)
FROM_INTEGERS(float, 24, ptx_up_f32)
FROM_INTEGERS(double, 53, ptx_up_f64)

F float ptx_half_value(uint16_t h) { _Float16 x; __builtin_memcpy(&x, &h, 2); return (float)x; }
F uint16_t ptx_half_bits(_Float16 x) { uint16_t h; __builtin_memcpy(&h, &x, 2); return h; }
F uint16_t ptx_half_f32(float f) { return f == f ? ptx_half_bits((_Float16)f) : 0x7fff; }
F float ptx_bf16_value(uint16_t h) { return ptx_f32((uint32_t)h << 16); }
F uint16_t ptx_bf16_f32(float f)
{
    uint32_t b = ptx_u32(f);
    return f == f ? (uint16_t)((b + 0x7fffu + (b >> 16 & 1)) >> 16) : 0x7fff;
}
/* s with the rounding error e folded into its last bit, so that rounding s again rounds the true sum once. */
F double ptx_odd(double s, double e)
{
    uint64_t b = ptx_u64(s);
    if (e == 0 || (b & 1))
        return s;
    return ptx_f64((e > 0) == (s > 0) ? b + 1 : b - 1);
}
F float ptx_odd_f32(double s)
{
    float f = (float)s;
    uint32_t b = ptx_u32(f);
    if (s != s || (double)f == s || (b & 1) || (b & 0x7fffffffu) == 0x7f800000u)
        return f;
    return ptx_f32((s > (double)f) == (s > 0) ? b + 1 : b - 1);
}
F uint16_t ptx_half_f64(double d) { return ptx_half_f32(ptx_odd_f32(d)); }
F uint16_t ptx_bf16_f64(double d) { return ptx_bf16_f32(ptx_odd_f32(d)); }
#define SMALL_FLOAT(n, value, round) \
F uint16_t ptx_add_##n(uint16_t a, uint16_t b) { double x = value(a), y = value(b), s = x + y; return round(ptx_odd(s, ptx_lost(x, y, s))); } \
F uint16_t ptx_sub_##n(uint16_t a, uint16_t b) { double x = value(a), y = -value(b), s = x + y; return round(ptx_odd(s, ptx_lost(x, y, s))); } \
F uint16_t ptx_mul_##n(uint16_t a, uint16_t b) { return round((double)value(a) * (double)value(b)); } \
F uint16_t ptx_fma_##n(uint16_t a, uint16_t b, uint16_t c) \
{ double p = (double)value(a) * (double)value(b), z = value(c), s = p + z; return round(ptx_odd(s, ptx_lost(p, z, s))); } \
F uint16_t ptx_min_##n(uint16_t a, uint16_t b) { return round(ptx_min_f32(value(a), value(b))); } \
F uint16_t ptx_max_##n(uint16_t a, uint16_t b) { return round(ptx_max_f32(value(a), value(b))); } \
F uint16_t ptx_min_nan_##n(uint16_t a, uint16_t b) { return round(ptx_min_nan_f32(value(a), value(b))); } \
F uint16_t ptx_max_nan_##n(uint16_t a, uint16_t b) { return round(ptx_max_nan_f32(value(a), value(b))); } \
F uint16_t ptx_ex2_##n(uint16_t a) { return round(ptx_ex2_f32(value(a))); } \
F uint16_t ptx_tanh_##n(uint16_t a) { return round(ptx_tanh_f32(value(a))); } \
F uint16_t ptx_neg_##n(uint16_t a) { return (uint16_t)(a ^ 0x8000); } \
F uint16_t ptx_abs_##n(uint16_t a) { return (uint16_t)(a & 0x7fff); } \
F uint16_t ptx_sat_##n(uint16_t a) { return round(ptx_sat_f32(value(a))); } \
F uint16_t ptx_relu_##n(uint16_t a) { return value(a) != value(a) ? 0x7fff : a >> 15 ? 0 : a; }
SMALL_FLOAT(f16, ptx_half_value, ptx_half_f64)
SMALL_FLOAT(bf16, ptx_bf16_value, ptx_bf16_f64)
F uint16_t ptx_ftz_f16(uint16_t a) { return (a & 0x7c00) ? a : (uint16_t)(a & 0x8000); }

/* 64-bit integers as doubles whose last bit tells that something was cut. */
F double ptx_odd_u64(uint64_t v)
{
    int extra = v ? 11 - __builtin_clzll(v) : 0;
    if (extra <= 0) return (double)v;
    uint64_t cut = v >> extra;
    return (double)((cut | (cut << extra != v)) << extra);
}
F double ptx_odd_s64(int64_t v) { return v < 0 ? -ptx_odd_u64(0 - (uint64_t)v) : ptx_odd_u64((uint64_t)v); }
F uint32_t ptx_tf32(float f) { uint32_t b = ptx_u32(f); return f == f && (b & 0x7f800000u) != 0x7f800000u ? (b + 0x1000u) & 0xffffe000u : f == f ? b : 0x7fffffffu; }
F uint16_t ptx_bf16_rz_f32(float f) { return f == f ? (uint16_t)(ptx_u32(f) >> 16) : 0x7fff; }
F uint16_t ptx_half_rz_f32(float f)
{
    uint16_t h = ptx_half_f32(f);
    float back = ptx_half_value(h);
    return f == f && __builtin_fabsf(back) > __builtin_fabsf(f) ? (uint16_t)(h - 1) : h;
}
F _Bool ptx_is_local(const struct ptx_block *B, uint64_t a) { return B->local && a - (uint64_t)B->local < B->local_bytes; }

/* ---- integers ---- */
F int32_t ptx_add_sat_s32(int32_t a, int32_t b) { int32_t r; return __builtin_add_overflow(a, b, &r) ? (a < 0 ? -2147483647 - 1 : 2147483647) : r; }
F int32_t ptx_sub_sat_s32(int32_t a, int32_t b) { int32_t r; return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? -2147483647 - 1 : 2147483647) : r; }
/* Carries: *cc is the carry out, or the borrow out. */
#define CARRY(T, bits) \
F T ptx_addc_u##bits(T a, T b, uint32_t in, uint32_t *cc) { T s, r; uint32_t c = __builtin_add_overflow(a, b, &s); c |= __builtin_add_overflow(s, (T)in, &r); *cc = c; return r; } \
F T ptx_subc_u##bits(T a, T b, uint32_t in, uint32_t *cc) { T s, r; uint32_t c = __builtin_sub_overflow(a, b, &s); c |= __builtin_sub_overflow(s, (T)in, &r); *cc = c; return r; }
CARRY(uint32_t, 32)
CARRY(uint64_t, 64)
/* Division by zero is not defined by PTX, and must not stop the process: all ones, remainder a. */
#define DIVIDE(T, n) \
F T ptx_div_##n(T a, T b) { return b ? (T)(a / b) : (T)~(T)0; } \
F T ptx_rem_##n(T a, T b) { return b ? (T)(a % b) : a; }
#define DIVIDE_SIGNED(T, n) \
F T ptx_div_##n(T a, T b) { return b == 0 ? (T)-1 : b == -1 ? (T)(0 - a) : (T)(a / b); } \
F T ptx_rem_##n(T a, T b) { return b == 0 ? a : b == -1 ? (T)0 : (T)(a % b); }
DIVIDE(uint16_t, u16) DIVIDE(uint32_t, u32) DIVIDE(uint64_t, u64)
DIVIDE_SIGNED(int16_t, s16) DIVIDE_SIGNED(int32_t, s32) DIVIDE_SIGNED(int64_t, s64)
#define SHIFTS(T, S, bits) \
F T ptx_shl_b##bits(T a, uint32_t n) { return n >= bits ? (T)0 : (T)(a << n); } \
F T ptx_shr_u##bits(T a, uint32_t n) { return n >= bits ? (T)0 : (T)(a >> n); } \
F S ptx_shr_s##bits(S a, uint32_t n) { return (S)(a >> (n >= bits ? bits - 1 : n)); }
SHIFTS(uint16_t, int16_t, 16) SHIFTS(uint32_t, int32_t, 32) SHIFTS(uint64_t, int64_t, 64)
F uint32_t ptx_mulhi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
F int32_t ptx_mulhi_s32(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
F uint64_t ptx_mulhi_u64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
F int64_t ptx_mulhi_s64(int64_t a, int64_t b) { return (int64_t)((__int128)a * b >> 64); }
F uint16_t ptx_mulhi_u16(uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b >> 16); }
F int16_t ptx_mulhi_s16(int16_t a, int16_t b) { return (int16_t)((int32_t)a * b >> 16); }
F uint32_t ptx_mul24_u32(uint32_t a, uint32_t b, int shift) { return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> shift); }
F int32_t ptx_mul24_s32(int32_t a, int32_t b, int shift) { return (int32_t)((int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8) >> shift); }
F uint32_t ptx_clz_b32(uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : 32; }
F uint32_t ptx_clz_b64(uint64_t a) { return a ? (uint32_t)__builtin_clzll(a) : 64; }
F uint32_t ptx_brev_b32(uint32_t a)
{
    a = __builtin_bswap32(a);
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    return (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
}
F uint64_t ptx_brev_b64(uint64_t a) { return (uint64_t)ptx_brev_b32((uint32_t)a) << 32 | ptx_brev_b32((uint32_t)(a >> 32)); }
F uint32_t ptx_bfind_u32(uint32_t a) { return a ? 31 - (uint32_t)__builtin_clz(a) : ~0u; }
F uint32_t ptx_bfind_u64(uint64_t a) { return a ? 63 - (uint32_t)__builtin_clzll(a) : ~0u; }
F uint32_t ptx_bfind_s32(int32_t a) { return ptx_bfind_u32((uint32_t)(a < 0 ? ~a : a)); }
F uint32_t ptx_bfind_s64(int64_t a) { return ptx_bfind_u64((uint64_t)(a < 0 ? ~a : a)); }
#define FIELDS(T, S, bits) \
F T ptx_bfe_u##bits(T a, uint32_t pos, uint32_t len) \
{ pos &= 255; len &= 255; T v = pos >= bits ? 0 : a >> pos; return len >= bits ? v : v & (((T)1 << len) - 1); } \
F S ptx_bfe_s##bits(S a, uint32_t pos, uint32_t len) \
{ \
    pos &= 255; len &= 255; \
    if (len == 0) return 0; \
    S v = (S)(a >> (pos >= bits ? bits - 1 : pos)); \
    if (pos + len >= bits) return v; \
    return (S)((S)((T)v << (bits - len)) >> (bits - len)); \
} \
F T ptx_bfi_b##bits(T a, T b, uint32_t pos, uint32_t len) \
{ \
    pos &= 255; len &= 255; \
    if (pos >= bits) return b; \
    T mask = (len >= bits ? ~(T)0 : ((T)1 << len) - 1) << pos; \
    return (b & ~mask) | (a << pos & mask); \
}
FIELDS(uint32_t, int32_t, 32) FIELDS(uint64_t, int64_t, 64)
F uint32_t ptx_bmsk(uint32_t pos, uint32_t len, _Bool clamp)
{
    if (clamp) { pos = pos > 32 ? 32 : pos; len = len > 32 ? 32 : len; } else { pos &= 31; len &= 31; }
    uint64_t mask = ((uint64_t)1 << len) - 1;
    return (uint32_t)(mask << pos);
}
F uint32_t ptx_szext_u32(uint32_t a, uint32_t n, _Bool clamp) { n = clamp ? n : n & 31; return n >= 32 ? a : a & ((1u << n) - 1); }
F int32_t ptx_szext_s32(int32_t a, uint32_t n, _Bool clamp) { n = clamp ? n : n & 31; return n >= 32 ? a : n == 0 ? 0 : (int32_t)((uint32_t)a << (32 - n)) >> (32 - n); }
F uint32_t ptx_fns(uint32_t mask, uint32_t base, int32_t n)
{
    base &= 31;
    int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
    if (n == 0) return mask >> base & 1 ? base : ~0u;
    for (int i = (int)base; i >= 0 && i < 32; i += step)
        if ((mask >> i & 1) && --left == 0) return (uint32_t)i;
    return ~0u;
}
F uint32_t ptx_shf_l(uint32_t a, uint32_t b, uint32_t n) { return (uint32_t)(((uint64_t)b << 32 | a) << n >> 32); }
F uint32_t ptx_shf_r(uint32_t a, uint32_t b, uint32_t n) { return n >= 32 ? b : (uint32_t)(((uint64_t)b << 32 | a) >> n); }
F uint32_t ptx_prmt_byte(uint64_t v, uint32_t s) { uint32_t b = (uint32_t)(v >> (8 * (s & 7))) & 0xff; return s & 8 ? (b >> 7 ? 0xff : 0) : b; }
F uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t s)
{
    uint64_t v = (uint64_t)b << 32 | a;
    return ptx_prmt_byte(v, s) | ptx_prmt_byte(v, s >> 4) << 8 | ptx_prmt_byte(v, s >> 8) << 16 | ptx_prmt_byte(v, s >> 12) << 24;
}
F uint32_t ptx_prmt_mode(uint32_t a, uint32_t b, uint32_t c, const uint16_t table[4]) { return ptx_prmt(a, b, table[c & 3]); }
F uint32_t ptx_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t t)
{
    uint32_t r = 0;
    if (t & 1) r |= ~a & ~b & ~c;
    if (t & 2) r |= ~a & ~b & c;
    if (t & 4) r |= ~a & b & ~c;
    if (t & 8) r |= ~a & b & c;
    if (t & 16) r |= a & ~b & ~c;
    if (t & 32) r |= a & ~b & c;
    if (t & 64) r |= a & b & ~c;
    if (t & 128) r |= a & b & c;
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
#define PAIR16(name, T, expression) \
F uint32_t ptx_##name(uint32_t a, uint32_t b) \
{ \
    uint32_t r = 0; \
    for (int i = 0; i < 32; i += 16) { T x = (T)(a >> i), y = (T)(b >> i); r |= (uint32_t)(uint16_t)(expression) << i; } \
    return r; \
}
PAIR16(add_u16x2, uint16_t, x + y) PAIR16(add_s16x2, int16_t, x + y)
PAIR16(min_u16x2, uint16_t, x < y ? x : y) PAIR16(min_s16x2, int16_t, x < y ? x : y)
PAIR16(max_u16x2, uint16_t, x > y ? x : y) PAIR16(max_s16x2, int16_t, x > y ? x : y)
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

/* A load that others write to may stand in a loop which waits for them. */
F void ptx_relax(struct ptx_block *B) { if ((++B->strong_loads & 63) == 0) B->relax(); }

/* ---- atomics: between blocks of all worker threads; a block's shared memory belongs to one thread ---- */
#define ATOM(name, T, next) \
F T ptx_atom_##name##_global(void *p, T v) \
{ \
    T old = __atomic_load_n((T *)p, __ATOMIC_RELAXED), new; \
    do { new = (next); } while (!__atomic_compare_exchange_n((T *)p, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); \
    return old; \
} \
F T ptx_atom_##name##_shared(void *p, T v) { T old = LOAD(T, p); STORE(T, p, next); return old; }
#define ATOM_FETCH(name, T, builtin, next) \
F T ptx_atom_##name##_global(void *p, T v) { return builtin((T *)p, v, __ATOMIC_ACQ_REL); } \
F T ptx_atom_##name##_shared(void *p, T v) { T old = LOAD(T, p); STORE(T, p, next); return old; }
#define ATOMS(T, S, n) \
ATOM_FETCH(add_u##n, T, __atomic_fetch_add, old + v) \
ATOM_FETCH(and_b##n, T, __atomic_fetch_and, old & v) \
ATOM_FETCH(or_b##n, T, __atomic_fetch_or, old | v) \
ATOM_FETCH(xor_b##n, T, __atomic_fetch_xor, old ^ v) \
ATOM_FETCH(exch_b##n, T, __atomic_exchange_n, v) \
ATOM(min_u##n, T, v < old ? v : old) ATOM(max_u##n, T, v > old ? v : old) \
ATOM(min_s##n, T, (S)v < (S)old ? v : old) ATOM(max_s##n, T, (S)v > (S)old ? v : old) \
ATOM(inc_u##n, T, old >= v ? 0 : old + 1) ATOM(dec_u##n, T, old == 0 || old > v ? v : old - 1) \
F T ptx_atom_cas_b##n##_global(void *p, T c, T v) { __atomic_compare_exchange_n((T *)p, &c, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); return c; } \
F T ptx_atom_cas_b##n##_shared(void *p, T c, T v) { T old = LOAD(T, p); if (old == c) STORE(T, p, v); return old; }
ATOMS(uint32_t, int32_t, 32)
ATOMS(uint64_t, int64_t, 64)
F uint16_t ptx_atom_cas_b16_global(void *p, uint16_t c, uint16_t v) { __atomic_compare_exchange_n((uint16_t *)p, &c, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); return c; }
F uint16_t ptx_atom_cas_b16_shared(void *p, uint16_t c, uint16_t v) { uint16_t old = LOAD(uint16_t, p); if (old == c) STORE(uint16_t, p, v); return old; }
ATOM(add_f32, uint32_t, ptx_u32(ptx_f32(old) + ptx_f32(v)))
ATOM(add_f64, uint64_t, ptx_u64(ptx_f64(old) + ptx_f64(v)))
ATOM(add_f16, uint16_t, ptx_add_f16(old, v))
ATOM(add_bf16, uint16_t, ptx_add_bf16(old, v))
ATOM(add_f16x2, uint32_t, ptx_add_f16((uint16_t)old, (uint16_t)v) | (uint32_t)ptx_add_f16((uint16_t)(old >> 16), (uint16_t)(v >> 16)) << 16)
ATOM(add_bf16x2, uint32_t, ptx_add_bf16((uint16_t)old, (uint16_t)v) | (uint32_t)ptx_add_bf16((uint16_t)(old >> 16), (uint16_t)(v >> 16)) << 16)

/* ---- warp operations: arrays start at the warp's first thread, `lanes` are the ones that take part ---- */
enum { PTX_UP, PTX_DOWN, PTX_BFLY, PTX_IDX };
F uint32_t ptx_shfl_lane(int mode, uint32_t lane, uint32_t b, uint32_t c, _Bool *in_range)
{
    uint32_t segment = c >> 8 & 31, most = (lane & segment) | (c & 31 & ~segment), j;
    b &= 31;
    if (mode == PTX_UP) { j = lane - b; *in_range = (int32_t)j >= (int32_t)most; }
    else if (mode == PTX_DOWN) { j = lane + b; *in_range = j <= most; }
    else if (mode == PTX_BFLY) { j = lane ^ b; *in_range = j <= most; }
    else { j = (lane & segment) | (b & ~segment & 31); *in_range = j <= most; }
    return *in_range ? j & 31 : lane;
}
#define EACH_LANE for (uint32_t lane = 0; lane < 32; lane++) if (lanes >> lane & 1)
F void ptx_shfl(int mode, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t bk, uint32_t ck,
                uint32_t *d, uint8_t *p, uint32_t lanes)
{
    uint32_t values[32];
    EACH_LANE {
        _Bool in_range;
        uint32_t from = ptx_shfl_lane(mode, lane, b ? b[lane] : bk, c ? c[lane] : ck, &in_range);
        values[lane] = a[lanes >> from & 1 ? from : lane];
        if (p)
            p[lane] = in_range;
    }
    EACH_LANE d[lane] = values[lane];
}
F uint32_t ptx_ballot(const uint32_t *a, uint32_t lanes)
{
    uint32_t ballot = 0;
    EACH_LANE ballot |= (uint32_t)(a[lane] != 0) << lane;
    return ballot;
}
#define MATCH(T) \
F uint32_t ptx_match_##T(const T *a, T value, uint32_t lanes) \
{ uint32_t same = 0; EACH_LANE same |= (uint32_t)(a[lane] == value) << lane; return same; }
MATCH(uint32_t)
MATCH(uint64_t)
#define REDUX(name, T, first, next) \
F uint32_t ptx_redux_##name(const uint32_t *a, uint32_t lanes) \
{ T r = (T)(first); EACH_LANE { T v = (T)a[lane]; r = (next); } return (uint32_t)r; }
REDUX(add_s32, uint32_t, 0, r + v) REDUX(add_u32, uint32_t, 0, r + v)
REDUX(min_u32, uint32_t, ~0u, v < r ? v : r) REDUX(max_u32, uint32_t, 0, v > r ? v : r)
REDUX(min_s32, int32_t, 0x7fffffff, v < r ? v : r) REDUX(max_s32, int32_t, 0x80000000u, v > r ? v : r)
REDUX(and_b32, uint32_t, ~0u, r & v) REDUX(or_b32, uint32_t, 0, r | v) REDUX(xor_b32, uint32_t, 0, r ^ v)

/* ---- where a loop over threads must be cut; a value starts at a and grows by k per thread, k not 0 ---- */
F uint32_t ptx_least(uint32_t n, uint64_t m) { return m < n ? (uint32_t)m : n; }
/* before a + k i leaves its type */
F uint32_t ptx_until_wrap(int64_t a, int64_t k, int64_t low, int64_t high, uint32_t n)
{
    return ptx_least(n, (uint64_t)(k > 0 ? (high - a) / k : (a - low) / -k) + 1);
}
F uint32_t ptx_until_wrap_s32(uint32_t a, int64_t k, uint32_t n) { return ptx_until_wrap((int32_t)a, k, -2147483648ll, 2147483647ll, n); }
F uint32_t ptx_until_wrap_u32(uint32_t a, int64_t k, uint32_t n) { return ptx_until_wrap((int64_t)a, k, 0, 4294967295ll, n); }
/* before a + k i < b changes */
F uint32_t ptx_until_order(int64_t a, int64_t k, int64_t b, uint32_t n)
{
    if (k > 0)
        return a < b ? ptx_least(n, (uint64_t)((b - a + k - 1) / k)) : n;
    return a >= b ? ptx_least(n, (uint64_t)((a - b) / -k) + 1) : n;
}
/* before a + k i == b changes */
F uint32_t ptx_until_equal(int64_t a, int64_t k, int64_t b, uint32_t n)
{
    if (a == b)
        return 1;
    return (b - a) % k == 0 && (b - a) / k > 0 ? ptx_least(n, (uint64_t)((b - a) / k)) : n;
}
