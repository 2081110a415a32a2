/* What PTX instructions do that C has no operator for. Head of every emitted C file, behind ptx_run.h.
 * Compiled with -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fwrapv. */
#pragma once

#define F    static inline __attribute__((always_inline, unused))
#define SLOW static __attribute__((noinline, unused))

/* ---- bits ---- */
F float ptx_f32(uint32_t b)
{
    float f;
    __builtin_memcpy(&f, &b, 4);
    return f;
}
F uint32_t ptx_u32(float f)
{
    uint32_t b;
    __builtin_memcpy(&b, &f, 4);
    return b;
}
F double ptx_f64(uint64_t b)
{
    double f;
    __builtin_memcpy(&f, &b, 8);
    return f;
}
F uint64_t ptx_u64(double f)
{
    uint64_t b;
    __builtin_memcpy(&b, &f, 8);
    return b;
}

#define MEM(T, bits) typedef T mem_##T __attribute__((may_alias, aligned(1)));
MEM(uint8_t, 8)
MEM(uint16_t, 16)
MEM(uint32_t, 32)
MEM(uint64_t, 64)
MEM(int8_t, 8)
MEM(int16_t, 16)
MEM(int32_t, 32)
MEM(int64_t, 64)
MEM(float, 32)
MEM(double, 64)
#define LOAD(T, p)              (*(const mem_##T *)(p))
#define STORE(T, p, v)          (*(mem_##T *)(p) = (v))
#define LOAD_VOLATILE(T, p)     (*(const volatile mem_##T *)(p))
#define STORE_VOLATILE(T, p, v) (*(volatile mem_##T *)(p) = (v))
#define SLOT(T, at)             ((T *)(B->slots + (uint64_t)(at)*B->stride))

/* ---- float: flush, saturate, compare ---- */
#define NAN32 ptx_f32(0x7fffffffu)
#define NAN64 ptx_f64(0x7fffffffffffffffu)
F float ptx_ftz_f32(float x)
{
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}
/* One condition per statement, here and below: so that loops over threads can be vectorised. */
F float ptx_sat_f32(float x)
{
    float y = x < 1.0f ? x : 1.0f;
    return x > 0.0f ? y : 0.0f;
}
F double ptx_sat_f64(double x)
{
    double y = x < 1.0 ? x : 1.0;
    return x > 0.0 ? y : 0.0;
}
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
    if (__builtin_constant_p(b) && ptx_u32(b) == 0)
        return a > 0.0f ? a : 0.0f; /* the same, in one step: ReLU */
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
F float ptx_min_nan_f32(float a, float b)
{
    float m = ptx_min_f32(a, b);
    return (a != a) | (b != b) ? NAN32 : m;
}
F float ptx_max_nan_f32(float a, float b)
{
    float m = ptx_max_f32(a, b);
    return (a != a) | (b != b) ? NAN32 : m;
}
F float ptx_abs_f32(float a)
{
    return ptx_f32(ptx_u32(a) & 0x7fffffffu);
}
F double ptx_abs_f64(double a)
{
    return ptx_f64(ptx_u64(a) & 0x7fffffffffffffffu);
}
F float ptx_neg_f32(float a)
{
    return ptx_f32(ptx_u32(a) ^ 0x80000000u);
}
F double ptx_neg_f64(double a)
{
    return ptx_f64(ptx_u64(a) ^ 0x8000000000000000u);
}
F float ptx_copysign_f32(float s, float m)
{
    return ptx_f32((ptx_u32(s) & 0x80000000u) | (ptx_u32(m) & 0x7fffffffu));
}
/* NaN stays what it is. */
F float ptx_xorsign_f32(float m, float a, float b)
{
    float signed_ = ptx_f32((ptx_u32(m) & 0x7fffffffu) | ((ptx_u32(a) ^ ptx_u32(b)) & 0x80000000u));
    return m == m ? signed_ : m;
}
#define XORSIGN(name)                                                                                                  \
    F float ptx_xorsign_##name##_f32(float a, float b)                                                                 \
    {                                                                                                                  \
        return ptx_xorsign_f32(ptx_##name##_f32(ptx_abs_f32(a), ptx_abs_f32(b)), a, b);                                \
    }
XORSIGN(min)
XORSIGN(max)
XORSIGN(min_nan)
XORSIGN(max_nan)
F double ptx_copysign_f64(double s, double m)
{
    return ptx_f64((ptx_u64(s) & 0x8000000000000000u) | (ptx_u64(m) & 0x7fffffffffffffffu));
}
F _Bool ptx_testp_finite_f32(float a)
{
    return (ptx_u32(a) & 0x7f800000u) != 0x7f800000u;
}
F _Bool ptx_testp_infinite_f32(float a)
{
    return (ptx_u32(a) & 0x7fffffffu) == 0x7f800000u;
}
F _Bool ptx_testp_number_f32(float a)
{
    return (ptx_u32(a) & 0x7fffffffu) <= 0x7f800000u;
}
F _Bool ptx_testp_notanumber_f32(float a)
{
    return !ptx_testp_number_f32(a);
}
F _Bool ptx_testp_subnormal_f32(float a)
{
    return (ptx_u32(a) & 0x7f800000u) == 0 && (ptx_u32(a) & 0x7fffffu);
}
F _Bool ptx_testp_normal_f32(float a)
{
    return (ptx_u32(a) & 0x7f800000u) && ptx_testp_finite_f32(a);
}
F _Bool ptx_testp_finite_f64(double a)
{
    return (ptx_u64(a) >> 52 & 0x7ff) != 0x7ff;
}
F _Bool ptx_testp_infinite_f64(double a)
{
    return ptx_u64(a) << 1 == 0x7ffull << 53;
}
F _Bool ptx_testp_number_f64(double a)
{
    return ptx_u64(a) << 1 <= 0x7ffull << 53;
}
F _Bool ptx_testp_notanumber_f64(double a)
{
    return !ptx_testp_number_f64(a);
}
F _Bool ptx_testp_subnormal_f64(double a)
{
    return (ptx_u64(a) >> 52 & 0x7ff) == 0 && ptx_u64(a) << 12;
}
F _Bool ptx_testp_normal_f64(double a)
{
    return (ptx_u64(a) >> 52 & 0x7ff) && ptx_testp_finite_f64(a);
}

/* ---- float: directed rounding ---- */
F float ptx_down_f32(float x)
{
    uint32_t b = ptx_u32(x);
    return x > 0 ? ptx_f32(b - 1) : x == 0 ? ptx_f32(0x80000001u) : x == x && b != 0xff800000u ? ptx_f32(b + 1) : x;
}
F float ptx_up_f32(float x)
{
    return -ptx_down_f32(-x);
}
F double ptx_down_f64(double x)
{
    uint64_t b = ptx_u64(x);
    return x > 0                                ? ptx_f64(b - 1)
           : x == 0                             ? ptx_f64(0x8000000000000001u)
           : x == x && b != 0xfff0000000000000u ? ptx_f64(b + 1)
                                                : x;
}
F double ptx_up_f64(double x)
{
    return -ptx_down_f64(-x);
}

/* The value d + e, where |e| is at most half a unit in the last place of d, rounded once. What is left of it beyond its
 * nearest float has the exact sign, as d minus that float is exact. */
F double ptx_rest(double d, double e, float f)
{
    return (d - (double)f) + e;
}
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
#define DIRECTED(mode, sum)                                                                                            \
    F float ptx_sum_##mode(double p, double c)                                                                         \
    {                                                                                                                  \
        double s = sum;                                                                                                \
        return ptx_round_##mode(s, ptx_lost(p, c, s));                                                                 \
    }                                                                                                                  \
    F float ptx_add_f32_##mode(float a, float b)                                                                       \
    {                                                                                                                  \
        return ptx_sum_##mode((double)a, (double)b);                                                                   \
    }                                                                                                                  \
    F float ptx_sub_f32_##mode(float a, float b)                                                                       \
    {                                                                                                                  \
        return ptx_sum_##mode((double)a, -(double)b);                                                                  \
    }                                                                                                                  \
    F float ptx_mul_f32_##mode(float a, float b)                                                                       \
    {                                                                                                                  \
        return ptx_round_##mode((double)a * (double)b, 0.0);                                                           \
    }                                                                                                                  \
    F float ptx_fma_f32_##mode(float a, float b, float c)                                                              \
    {                                                                                                                  \
        return ptx_sum_##mode((double)a * (double)b, (double)c);                                                       \
    }                                                                                                                  \
    F float ptx_cvt_f64_f32_##mode(double a)                                                                           \
    {                                                                                                                  \
        return ptx_round_##mode(a, 0.0);                                                                               \
    }
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
#define IN_MODE(T, mode, expression)                                                                                   \
    fesetround(mode);                                                                                                  \
    volatile T r_ = (expression);                                                                                      \
    fesetround(PTX_RN);                                                                                                \
    return r_;
#define SLOWLY(mode, MODE)                                                                                             \
    SLOW double ptx_add_f64_##mode(double x, double y)                                                                 \
    {                                                                                                                  \
        volatile double a = x, b = y;                                                                                  \
        IN_MODE(double, MODE, a + b)                                                                                   \
    }                                                                                                                  \
    SLOW double ptx_sub_f64_##mode(double x, double y)                                                                 \
    {                                                                                                                  \
        volatile double a = x, b = y;                                                                                  \
        IN_MODE(double, MODE, a - b)                                                                                   \
    }                                                                                                                  \
    SLOW double ptx_mul_f64_##mode(double x, double y)                                                                 \
    {                                                                                                                  \
        volatile double a = x, b = y;                                                                                  \
        IN_MODE(double, MODE, a *b)                                                                                    \
    }                                                                                                                  \
    SLOW double ptx_div_f64_##mode(double x, double y)                                                                 \
    {                                                                                                                  \
        volatile double a = x, b = y;                                                                                  \
        IN_MODE(double, MODE, a / b)                                                                                   \
    }                                                                                                                  \
    SLOW double ptx_sqrt_f64_##mode(double x)                                                                          \
    {                                                                                                                  \
        volatile double a = x;                                                                                         \
        IN_MODE(double, MODE, __builtin_sqrt(a))                                                                       \
    }                                                                                                                  \
    SLOW double ptx_fma_f64_##mode(double x, double y, double z)                                                       \
    {                                                                                                                  \
        volatile double a = x, b = y, c = z;                                                                           \
        IN_MODE(double, MODE, __builtin_fma(a, b, c))                                                                  \
    }                                                                                                                  \
    SLOW float ptx_div_f32_##mode(float x, float y)                                                                    \
    {                                                                                                                  \
        volatile float a = x, b = y;                                                                                   \
        IN_MODE(float, MODE, a / b)                                                                                    \
    }                                                                                                                  \
    SLOW float ptx_sqrt_f32_##mode(float x)                                                                            \
    {                                                                                                                  \
        volatile float a = x;                                                                                          \
        IN_MODE(float, MODE, __builtin_sqrtf(a))                                                                       \
    }
SLOWLY(rm, PTX_RM)
SLOWLY(rp, PTX_RP)
SLOWLY(rz, PTX_RZ)
