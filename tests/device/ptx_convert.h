/* Approximations and conversions; emitted C, behind ptx_prelude.h. */
#pragma once

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
    *r = __builtin_fabs(*r) < 1.0 ? *r : 0.0; /* an argument so large that nothing is left of its phase */
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
    return 1.0 + q * (-0.5 + q * (1.0 / 24 +
                                  q * (-1.0 / 720 + q * (1.0 / 40320 - q * (1.0 / 3628800 - q * (1.0 / 479001600))))));
}
F float ptx_turned(double r, double k)
{
    double y = k == 1.0 || k == 3.0 ? ptx_cosine(r) : ptx_sine(r);
    return (float)(k >= 2.0 ? -y : y);
}
F float ptx_sin_f32(float x)
{
    double r, k = ptx_quarter(x, &r);
    return x == 0.0f ? x : x - x == 0.0f ? ptx_turned(r, k) : NAN32;
}
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
F float ptx_rsqrt_f32(float x)
{
    return (float)(1.0 / __builtin_sqrt((double)x));
}
F double ptx_rsqrt_f64(double x)
{
    return 1.0 / __builtin_sqrt(x);
}
/* Only the upper 32 bits of operand and result count. */
F double ptx_upper(double x)
{
    return ptx_f64(ptx_u64(x) & 0xffffffff00000000u);
}
F double ptx_flush_f64(double x)
{
    return __builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(0.0, x) : x;
}
F double ptx_rcp_ftz_f64(double x)
{
    return x == x ? ptx_upper(ptx_flush_f64(1.0 / ptx_flush_f64(ptx_upper(x)))) : NAN64;
}
F double ptx_rsqrt_ftz_f64(double x)
{
    return x == x ? ptx_upper(1.0 / __builtin_sqrt(ptx_flush_f64(ptx_upper(x)))) : NAN64;
}
/* Beyond 2^126 the divisor's reciprocal vanishes, says the manual. */
F float ptx_div_approx_f32(float a, float b)
{
    float r = a / b, y = __builtin_fabsf(b);
    float far = __builtin_fabsf(a) < ptx_f32(0x7f800000u) ? ptx_f32((ptx_u32(a) ^ ptx_u32(b)) & 0x80000000u) : NAN32;
    return (y > 0x1p126f) & (y < ptx_f32(0x7f800000u)) ? far : r;
}

/* ---- conversions ---- */
#define ROUNDING(T, s)                                                                                                 \
    F T ptx_rni_##T(T x)                                                                                               \
    {                                                                                                                  \
        return __builtin_rint##s(x);                                                                                   \
    }                                                                                                                  \
    F T ptx_rzi_##T(T x)                                                                                               \
    {                                                                                                                  \
        return __builtin_trunc##s(x);                                                                                  \
    }                                                                                                                  \
    F T ptx_rmi_##T(T x)                                                                                               \
    {                                                                                                                  \
        return __builtin_floor##s(x);                                                                                  \
    }                                                                                                                  \
    F T ptx_rpi_##T(T x)                                                                                               \
    {                                                                                                                  \
        return __builtin_ceil##s(x);                                                                                   \
    }
ROUNDING(float, f)
ROUNDING(double, )

/* x is integral or NaN; out of range goes to the nearest bound, NaN to 0 (64-bit: 2^63, as the hardware gives). */
#define TO_INTEGER(F_, I, low, over, high, nan)                                                                        \
    F I ptx_##F_##_to_##I(F_ x)                                                                                        \
    {                                                                                                                  \
        I v = x < (F_)(over) ? (I)x : (I)(high);                                                                       \
        v = x < (F_)(low) ? (I)(low) : v;                                                                              \
        return x != x ? (I)(nan) : v;                                                                                  \
    }
#define TO_INTEGERS(F_)                                                                                                \
    TO_INTEGER(F_, int8_t, -128, 128, 127, 0)                                                                          \
    TO_INTEGER(F_, uint8_t, 0, 256, 255, 0)                                                                            \
    TO_INTEGER(F_, int16_t, -32768, 32768, 32767, 0)                                                                   \
    TO_INTEGER(F_, uint16_t, 0, 65536, 65535, 0)                                                                       \
    TO_INTEGER(F_, int32_t, -2147483647 - 1, 2147483648.0, 2147483647, 0)                                              \
    TO_INTEGER(F_, uint32_t, 0, 4294967296.0, 4294967295u, 0)                                                          \
    TO_INTEGER(F_, int64_t, -9223372036854775807ll - 1, 9223372036854775808.0, 9223372036854775807ll,                  \
               0x8000000000000000u)                                                                                    \
    TO_INTEGER(F_, uint64_t, 0, 18446744073709551616.0, 18446744073709551615ull, 0x8000000000000000u)
TO_INTEGERS(float)
TO_INTEGERS(double)

/* |v| cut to the bits that fit, then one step away from zero where the mode asks for it. */
#define FROM_INTEGER(F_, bits, up, mode, away)                                                                         \
    F F_ ptx_from_u64_##F_##_##mode(uint64_t v, _Bool negative)                                                        \
    {                                                                                                                  \
        int extra = v ? 64 - bits - __builtin_clzll(v) : 0;                                                            \
        uint64_t cut = extra > 0 ? v >> extra << extra : v;                                                            \
        F_ f = (F_)cut;                                                                                                \
        f = cut != v && (away) ? up(f) : f;                                                                            \
        return negative ? -f : f;                                                                                      \
    }
#define FROM_INTEGERS(F_, bits, up)                                                                                    \
    FROM_INTEGER(F_, bits, up, rz, 0) FROM_INTEGER(F_, bits, up, rm, negative) FROM_INTEGER(F_, bits, up, rp, !negative)
FROM_INTEGERS(float, 24, ptx_up_f32)
FROM_INTEGERS(double, 53, ptx_up_f64)

F float ptx_half_value(uint16_t h)
{
    _Float16 x;
    __builtin_memcpy(&x, &h, 2);
    return (float)x;
}
F uint16_t ptx_half_bits(_Float16 x)
{
    uint16_t h;
    __builtin_memcpy(&h, &x, 2);
    return h;
}
F uint16_t ptx_half_f32(float f)
{
    return f == f ? ptx_half_bits((_Float16)f) : 0x7fff;
}
F float ptx_bf16_value(uint16_t h)
{
    return ptx_f32((uint32_t)h << 16);
}
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
F uint16_t ptx_half_f64(double d)
{
    return ptx_half_f32(ptx_odd_f32(d));
}
F uint16_t ptx_bf16_f64(double d)
{
    return ptx_bf16_f32(ptx_odd_f32(d));
}
#define SMALL_FLOAT(n, value, round)                                                                                   \
    F uint16_t ptx_add_##n(uint16_t a, uint16_t b)                                                                     \
    {                                                                                                                  \
        double x = value(a), y = value(b), s = x + y;                                                                  \
        return round(ptx_odd(s, ptx_lost(x, y, s)));                                                                   \
    }                                                                                                                  \
    F uint16_t ptx_sub_##n(uint16_t a, uint16_t b)                                                                     \
    {                                                                                                                  \
        double x = value(a), y = -value(b), s = x + y;                                                                 \
        return round(ptx_odd(s, ptx_lost(x, y, s)));                                                                   \
    }                                                                                                                  \
    F uint16_t ptx_mul_##n(uint16_t a, uint16_t b)                                                                     \
    {                                                                                                                  \
        return round((double)value(a) * (double)value(b));                                                             \
    }                                                                                                                  \
    F uint16_t ptx_fma_##n(uint16_t a, uint16_t b, uint16_t c)                                                         \
    {                                                                                                                  \
        double p = (double)value(a) * (double)value(b), z = value(c), s = p + z;                                       \
        return round(ptx_odd(s, ptx_lost(p, z, s)));                                                                   \
    }                                                                                                                  \
    F uint16_t ptx_min_##n(uint16_t a, uint16_t b)                                                                     \
    {                                                                                                                  \
        return round(ptx_min_f32(value(a), value(b)));                                                                 \
    }                                                                                                                  \
    F uint16_t ptx_max_##n(uint16_t a, uint16_t b)                                                                     \
    {                                                                                                                  \
        return round(ptx_max_f32(value(a), value(b)));                                                                 \
    }                                                                                                                  \
    F uint16_t ptx_min_nan_##n(uint16_t a, uint16_t b)                                                                 \
    {                                                                                                                  \
        return round(ptx_min_nan_f32(value(a), value(b)));                                                             \
    }                                                                                                                  \
    F uint16_t ptx_max_nan_##n(uint16_t a, uint16_t b)                                                                 \
    {                                                                                                                  \
        return round(ptx_max_nan_f32(value(a), value(b)));                                                             \
    }                                                                                                                  \
    F uint16_t ptx_xorsign_min_##n(uint16_t a, uint16_t b)                                                             \
    {                                                                                                                  \
        return round(ptx_xorsign_min_f32(value(a), value(b)));                                                         \
    }                                                                                                                  \
    F uint16_t ptx_xorsign_max_##n(uint16_t a, uint16_t b)                                                             \
    {                                                                                                                  \
        return round(ptx_xorsign_max_f32(value(a), value(b)));                                                         \
    }                                                                                                                  \
    F uint16_t ptx_xorsign_min_nan_##n(uint16_t a, uint16_t b)                                                         \
    {                                                                                                                  \
        return round(ptx_xorsign_min_nan_f32(value(a), value(b)));                                                     \
    }                                                                                                                  \
    F uint16_t ptx_xorsign_max_nan_##n(uint16_t a, uint16_t b)                                                         \
    {                                                                                                                  \
        return round(ptx_xorsign_max_nan_f32(value(a), value(b)));                                                     \
    }                                                                                                                  \
    F uint16_t ptx_ex2_##n(uint16_t a)                                                                                 \
    {                                                                                                                  \
        return round(ptx_ex2_f32(value(a)));                                                                           \
    }                                                                                                                  \
    F uint16_t ptx_tanh_##n(uint16_t a)                                                                                \
    {                                                                                                                  \
        return round(ptx_tanh_f32(value(a)));                                                                          \
    }                                                                                                                  \
    F uint16_t ptx_neg_##n(uint16_t a)                                                                                 \
    {                                                                                                                  \
        return (uint16_t)(a ^ 0x8000);                                                                                 \
    }                                                                                                                  \
    F uint16_t ptx_abs_##n(uint16_t a)                                                                                 \
    {                                                                                                                  \
        return (uint16_t)(a & 0x7fff);                                                                                 \
    }                                                                                                                  \
    F uint16_t ptx_sat_##n(uint16_t a)                                                                                 \
    {                                                                                                                  \
        return round(ptx_sat_f32(value(a)));                                                                           \
    }                                                                                                                  \
    F uint16_t ptx_relu_##n(uint16_t a)                                                                                \
    {                                                                                                                  \
        return value(a) != value(a) ? 0x7fff : a >> 15 ? 0 : a;                                                        \
    }
SMALL_FLOAT(f16, ptx_half_value, ptx_half_f64)
SMALL_FLOAT(bf16, ptx_bf16_value, ptx_bf16_f64)
F uint16_t ptx_ftz_f16(uint16_t a)
{
    return (a & 0x7c00) ? a : (uint16_t)(a & 0x8000);
}

F uint16_t ptx_ftz_bf16(uint16_t a)
{
    return (a & 0x7f80) ? a : (uint16_t)(a & 0x8000);
}

/* 64-bit integers as doubles whose last bit tells that something was cut. */
F double ptx_odd_u64(uint64_t v)
{
    int extra = v ? 11 - __builtin_clzll(v) : 0;
    if (extra <= 0)
        return (double)v;
    uint64_t cut = v >> extra;
    return (double)((cut | (cut << extra != v)) << extra);
}
F double ptx_odd_s64(int64_t v)
{
    return v < 0 ? -ptx_odd_u64(0 - (uint64_t)v) : ptx_odd_u64((uint64_t)v);
}
#define TF32(mode, added)                                                                                              \
    F uint32_t ptx_tf32_##mode(float f, _Bool satfinite)                                                               \
    {                                                                                                                  \
        uint32_t b = ptx_u32(f), r = (b & 0x7f800000u) == 0x7f800000u ? b : (b + (added)) & 0xffffe000u;               \
        r = satfinite && (r & 0x7fffffffu) == 0x7f800000u ? (r & 0x80000000u) | 0x7f7fe000u : r;                       \
        return f == f ? r : 0x7fffffffu;                                                                               \
    }
TF32(rna, 0x1000u)
TF32(rn, 0xfffu + (b >> 13 & 1))
TF32(rz, 0u)
/* To the nearest, then one step where that lies on the wrong side of d. */
#define SMALL_DIRECTED(n, value, nearest)                                                                              \
    F uint16_t ptx_##n##_rz_f64(double d)                                                                              \
    {                                                                                                                  \
        uint16_t h = nearest(d);                                                                                       \
        return __builtin_fabs((double)value(h)) > __builtin_fabs(d) ? (uint16_t)(h - 1) : h;                           \
    }                                                                                                                  \
    F uint16_t ptx_##n##_rm_f64(double d)                                                                              \
    {                                                                                                                  \
        uint16_t h = nearest(d), below = (h & 0x7fff) == 0 ? 0x8001 : (uint16_t)(h >> 15 ? h + 1 : h - 1);             \
        return (double)value(h) > d ? below : h;                                                                       \
    }                                                                                                                  \
    F uint16_t ptx_##n##_rp_f64(double d)                                                                              \
    {                                                                                                                  \
        uint16_t h = nearest(d), above = (h & 0x7fff) == 0 ? 0x0001 : (uint16_t)(h >> 15 ? h - 1 : h + 1);             \
        return (double)value(h) < d ? above : h;                                                                       \
    }
SMALL_DIRECTED(half, ptx_half_value, ptx_half_f64)
SMALL_DIRECTED(bf16, ptx_bf16_value, ptx_bf16_f64)
F uint16_t ptx_satfinite_f16(uint16_t a)
{
    return (a & 0x7fff) == 0x7c00 ? (uint16_t)(a - 1) : a;
}
F uint16_t ptx_satfinite_bf16(uint16_t a)
{
    return (a & 0x7fff) == 0x7f80 ? (uint16_t)(a - 1) : a;
}
F _Bool ptx_is_shared(const struct ptx_block *B, uint64_t a)
{
    return a - (uint64_t)B->shared < B->total_shared;
}
F _Bool ptx_is_local(const struct ptx_block *B, uint64_t a)
{
    return B->local && a - (uint64_t)B->local < B->local_bytes;
}

/* ---- 8-bit floats; beyond the largest finite value they stay there ---- */
F uint8_t ptx_small_bits(float f, int mantissa, int bias, uint32_t largest)
{
    uint32_t sign = ptx_u32(f) >> 31 << 7, one = 1u << mantissa;
    float a = __builtin_fabsf(f);
    if (f != f)
        return 0x7f;
    if (a >= 0x1p20f)
        return (uint8_t)(sign | largest);
    int exponent = (int)(ptx_u32(a) >> 23) - 127;
    exponent = exponent < 1 - bias ? 1 - bias : exponent;
    uint32_t steps = (uint32_t)__builtin_rintf(a * ptx_f32((uint32_t)(127 + mantissa - exponent) << 23));
    exponent += steps == 2 * one;
    steps = steps == 2 * one ? one : steps;
    uint32_t code = steps < one ? steps : (uint32_t)(exponent + bias) << mantissa | (steps - one);
    return (uint8_t)(sign | (code > largest ? largest : code));
}
F uint8_t ptx_e4m3_f32(float f)
{
    return ptx_small_bits(f, 3, 7, 0x7e);
}
F uint8_t ptx_e5m2_f32(float f)
{
    return ptx_small_bits(f, 2, 15, 0x7b);
}
F uint16_t ptx_half_e5m2(uint8_t b)
{
    return (b & 0x7f) > 0x7c ? 0x7fff : (uint16_t)(b << 8);
}
F uint16_t ptx_half_e4m3(uint8_t b)
{
    uint32_t exponent = b >> 3 & 15, fraction = b & 7;
    float value = exponent ? (float)(8 + fraction) * ptx_f32((exponent + 127 - 10) << 23) : (float)fraction * 0x1p-9f;
    return (b & 0x7f) == 0x7f ? 0x7fff : ptx_half_f32(b & 0x80 ? -value : value);
}
F float ptx_relu_f32(float f)
{
    float y = f > 0.0f ? f : 0.0f;
    return f == f ? y : NAN32;
}
