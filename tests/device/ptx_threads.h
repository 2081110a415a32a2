/* What threads do together, and loops over them; emitted C, behind ptx_convert.h. */
#pragma once

/* ---- mbarrier: bit 63 the phase, then what is still to come of bytes, of threads per phase, and of threads ---- */
F uint64_t ptx_mbarrier_fields(uint64_t phase, int64_t bytes, uint32_t threads, uint32_t pending)
{
    return phase << 63 | ((uint64_t)bytes & 0x7fffff) << 40 | (uint64_t)(threads & 0xfffff) << 20 | (pending & 0xfffff);
}
F void ptx_mbarrier_init(uint8_t *at, uint32_t count)
{
    STORE(uint64_t, at, ptx_mbarrier_fields(0, 0, count, count));
}
F int64_t ptx_mbarrier_bytes(uint64_t b)
{
    return (int64_t)(b << 1) >> 41;
}
F void ptx_mbarrier_put(uint8_t *at, uint64_t phase, int64_t bytes, uint32_t threads, uint32_t pending)
{
    _Bool is_complete = pending == 0 && bytes == 0;
    STORE(uint64_t, at, ptx_mbarrier_fields(phase ^ is_complete, bytes, threads, is_complete ? threads : pending));
}
F void ptx_mbarrier_expect(uint8_t *at, int64_t bytes)
{
    uint64_t b = LOAD(uint64_t, at);
    ptx_mbarrier_put(at, b >> 63, ptx_mbarrier_bytes(b) + bytes, (uint32_t)(b >> 20) & 0xfffff, (uint32_t)b & 0xfffff);
}
/* Returns the state before. */
F uint64_t ptx_mbarrier_arrive(uint8_t *at, uint32_t count, _Bool drops)
{
    uint64_t b = LOAD(uint64_t, at);
    uint32_t threads = ((uint32_t)(b >> 20) & 0xfffff) - (drops ? count : 0);
    ptx_mbarrier_put(at, b >> 63, ptx_mbarrier_bytes(b), threads, ((uint32_t)b & 0xfffff) - count);
    return b;
}
F _Bool ptx_mbarrier_passed(const uint8_t *at, uint32_t phase)
{
    return LOAD(uint64_t, at) >> 63 != (phase & 1);
}

/* ---- atomics: between blocks of all worker threads; a block's shared memory belongs to one thread ---- */
#define ATOM(name, T, next)                                                                                            \
    F T ptx_atom_##name##_global(void *p, T v)                                                                         \
    {                                                                                                                  \
        T old = __atomic_load_n((T *)p, __ATOMIC_RELAXED), new;                                                        \
        do {                                                                                                           \
            new = (next);                                                                                              \
        } while (!__atomic_compare_exchange_n((T *)p, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));              \
        return old;                                                                                                    \
    }                                                                                                                  \
    F T ptx_atom_##name##_shared(void *p, T v)                                                                         \
    {                                                                                                                  \
        T old = LOAD(T, p);                                                                                            \
        STORE(T, p, next);                                                                                             \
        return old;                                                                                                    \
    }
#define ATOM_FETCH(name, T, builtin, next)                                                                             \
    F T ptx_atom_##name##_global(void *p, T v)                                                                         \
    {                                                                                                                  \
        return builtin((T *)p, v, __ATOMIC_ACQ_REL);                                                                   \
    }                                                                                                                  \
    F T ptx_atom_##name##_shared(void *p, T v)                                                                         \
    {                                                                                                                  \
        T old = LOAD(T, p);                                                                                            \
        STORE(T, p, next);                                                                                             \
        return old;                                                                                                    \
    }
#define ATOMS(T, S, n)                                                                                                 \
    ATOM_FETCH(add_u##n, T, __atomic_fetch_add, old + v)                                                               \
    ATOM_FETCH(and_b##n, T, __atomic_fetch_and, old &v)                                                                \
    ATOM_FETCH(or_b##n, T, __atomic_fetch_or, old | v)                                                                 \
    ATOM_FETCH(xor_b##n, T, __atomic_fetch_xor, old ^ v)                                                               \
    ATOM_FETCH(exch_b##n, T, __atomic_exchange_n, v)                                                                   \
    ATOM(min_u##n, T, v < old ? v : old)                                                                               \
    ATOM(max_u##n, T, v > old ? v : old)                                                                               \
    ATOM(min_s##n, T, (S)v < (S)old ? v : old)                                                                         \
    ATOM(max_s##n, T, (S)v > (S)old ? v : old)                                                                         \
    ATOM(inc_u##n, T, old >= v ? 0 : old + 1)                                                                          \
    ATOM(dec_u##n, T, old == 0 || old > v ? v : old - 1) F T ptx_atom_cas_b##n##_global(void *p, T c, T v)             \
    {                                                                                                                  \
        __atomic_compare_exchange_n((T *)p, &c, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                             \
        return c;                                                                                                      \
    }                                                                                                                  \
    F T ptx_atom_cas_b##n##_shared(void *p, T c, T v)                                                                  \
    {                                                                                                                  \
        T old = LOAD(T, p);                                                                                            \
        if (old == c)                                                                                                  \
            STORE(T, p, v);                                                                                            \
        return old;                                                                                                    \
    }
ATOMS(uint32_t, int32_t, 32)
ATOMS(uint64_t, int64_t, 64)
F uint16_t ptx_atom_cas_b16_global(void *p, uint16_t c, uint16_t v)
{
    __atomic_compare_exchange_n((uint16_t *)p, &c, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return c;
}
F uint16_t ptx_atom_cas_b16_shared(void *p, uint16_t c, uint16_t v)
{
    uint16_t old = LOAD(uint16_t, p);
    if (old == c)
        STORE(uint16_t, p, v);
    return old;
}
F uint32_t ptx_atom_add_f32_global(void *p, uint32_t v)
{
    uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED), new;
    do
        new = ptx_u32(ptx_ftz_f32(ptx_ftz_f32(ptx_f32(old)) + ptx_ftz_f32(ptx_f32(v))));
    while (!__atomic_compare_exchange_n((uint32_t *)p, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return old;
}
F uint32_t ptx_atom_add_f32_shared(void *p, uint32_t v)
{
    uint32_t old = LOAD(uint32_t, p);
    STORE(uint32_t, p, ptx_u32(ptx_f32(old) + ptx_f32(v)));
    return old;
}
ATOM(add_f64, uint64_t, ptx_u64(ptx_f64(old) + ptx_f64(v)))
#define PAIR_OF(f, old, v)                                                                                             \
    (f((uint16_t)old, (uint16_t)v) | (uint32_t)f((uint16_t)(old >> 16), (uint16_t)(v >> 16)) << 16)
#define ATOM_SMALL(name)                                                                                               \
    ATOM(name##_f16, uint16_t, ptx_##name##_f16(old, v))                                                               \
    ATOM(name##_bf16, uint16_t, ptx_##name##_bf16(old, v))                                                             \
    ATOM(name##_f16x2, uint32_t, PAIR_OF(ptx_##name##_f16, old, v))                                                    \
    ATOM(name##_bf16x2, uint32_t, PAIR_OF(ptx_##name##_bf16, old, v))
ATOM_SMALL(add)
ATOM_SMALL(min)
ATOM_SMALL(max)

/* ---- warp operations: arrays start at the warp's first thread, `lanes` are the ones that take part ---- */
enum { PTX_UP, PTX_DOWN, PTX_BFLY, PTX_IDX };
F uint32_t ptx_shfl_lane(int mode, uint32_t lane, uint32_t b, uint32_t c, _Bool *in_range)
{
    uint32_t segment = c >> 8 & 31, most = (lane & segment) | (c & 31 & ~segment), j;
    b &= 31;
    if (mode == PTX_UP) {
        j = lane - b;
        *in_range = (int32_t)j >= (int32_t)most;
    } else if (mode == PTX_DOWN) {
        j = lane + b;
        *in_range = j <= most;
    } else if (mode == PTX_BFLY) {
        j = lane ^ b;
        *in_range = j <= most;
    } else {
        j = (lane & segment) | (b & ~segment & 31);
        *in_range = j <= most;
    }
    return *in_range ? j & 31 : lane;
}
#define EACH_LANE                                                                                                      \
    for (uint32_t lane = 0; lane < 32; lane++)                                                                         \
        if (lanes >> lane & 1)
F void ptx_shfl(int mode, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t bk, uint32_t ck,
                uint32_t *d, uint8_t *p, uint32_t lanes)
{
    uint32_t values[32];
    EACH_LANE
    {
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
#define MATCH(T)                                                                                                       \
    F uint32_t ptx_match_##T(const T *a, T value, uint32_t lanes)                                                      \
    {                                                                                                                  \
        uint32_t same = 0;                                                                                             \
        EACH_LANE same |= (uint32_t)(a[lane] == value) << lane;                                                        \
        return same;                                                                                                   \
    }
MATCH(uint32_t)
MATCH(uint64_t)
#define REDUX(name, T, first, next)                                                                                    \
    F uint32_t ptx_redux_##name(const uint32_t *a, uint32_t lanes)                                                     \
    {                                                                                                                  \
        T r = (T)(first);                                                                                              \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            T v = (T)a[lane];                                                                                          \
            r = (next);                                                                                                \
        }                                                                                                              \
        return (uint32_t)r;                                                                                            \
    }
REDUX(add_s32, uint32_t, 0, r + v)
REDUX(add_u32, uint32_t, 0, r + v)
REDUX(min_u32, uint32_t, ~0u, v < r ? v : r)
REDUX(max_u32, uint32_t, 0, v > r ? v : r)
REDUX(min_s32, int32_t, 0x7fffffff, v < r ? v : r)
REDUX(max_s32, int32_t, 0x80000000u, v > r ? v : r)
REDUX(and_b32, uint32_t, ~0u, r &v)
REDUX(or_b32, uint32_t, 0, r | v)
REDUX(xor_b32, uint32_t, 0, r ^ v)

/* ---- where a loop over threads must be cut; a value starts at a and grows by k per thread, k not 0 ---- */
F uint32_t ptx_least(uint32_t n, uint64_t m)
{
    return m < n ? (uint32_t)m : n;
}
/* before a + k i leaves its type */
F uint32_t ptx_until_wrap(int64_t a, int64_t k, int64_t low, int64_t high, uint32_t n)
{
    return ptx_least(n, (uint64_t)(k > 0 ? (high - a) / k : (a - low) / -k) + 1);
}
F uint32_t ptx_until_wrap_s32(uint32_t a, int64_t k, uint32_t n)
{
    return ptx_until_wrap((int32_t)a, k, -2147483648ll, 2147483647ll, n);
}
F uint32_t ptx_until_wrap_u32(uint32_t a, int64_t k, uint32_t n)
{
    return ptx_until_wrap((int64_t)a, k, 0, 4294967295ll, n);
}
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
/* before a thread does not carry on from the first one's value */
#define UNTIL_STRAY(T, bits)                                                                                           \
    F uint32_t ptx_until_stray_u##bits(const T *values, int64_t k, uint32_t n)                                         \
    {                                                                                                                  \
        T differs = 0, first = values[0];                                                                              \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            differs |= values[i] ^ (T)(first + (T)k * i);                                                              \
        if (!differs)                                                                                                  \
            return n;                                                                                                  \
        uint32_t i = 1;                                                                                                \
        while (i < n && values[i] == (T)(first + (T)k * i))                                                            \
            i++;                                                                                                       \
        return i;                                                                                                      \
    }
UNTIL_STRAY(uint32_t, 32)
UNTIL_STRAY(uint64_t, 64)
