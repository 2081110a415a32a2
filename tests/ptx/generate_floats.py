"""Arithmetic of floats, and approximations."""
import math
import random

import exact as x
from cases import File, NAMES, floats, near, pairs, saturated, word_type


def float_arithmetic():
    f = File("float_arithmetic")

    def binary(op, fmt, fn, text, ftz=False, sat=False):
        name, bits = NAMES[fmt]
        ps = pairs(floats(fmt), 170) + [(a, b) for a, b, c in near(fmt, 15)]
        want = []
        for a, b in ps:
            if ftz:
                a, b = x.flush(fmt, a), x.flush(fmt, b)
            r = fn(a, b)
            if ftz:
                r = x.flush(fmt, r)
            want.append(saturated(fmt, r) if sat else r)
        f.case(["%s %%d, %%a0, %%a1;" % text], [(word_type(fmt), bits, [p[0] for p in ps]), (word_type(fmt), bits, [p[1] for p in ps])],
               word_type(fmt), bits, want)

    for fmt in (x.F32, x.F64):
        name = NAMES[fmt][0]
        for mode in ("", "rn", "rz", "rm", "rp"):
            dot = "." + mode if mode else ""
            rounding = mode or "rn"
            binary("add", fmt, lambda a, b: x.add(fmt, a, b, rounding), "add%s.%s" % (dot, name))
            binary("sub", fmt, lambda a, b: x.add(fmt, a, x.negate(fmt, b), rounding) if not x.is_nan(fmt, b) else x.NAN,
                   "sub%s.%s" % (dot, name))
            binary("mul", fmt, lambda a, b: x.mul(fmt, a, b, rounding), "mul%s.%s" % (dot, name))
            if mode:
                binary("div", fmt, lambda a, b: x.div(fmt, a, b, rounding), "div%s.%s" % (dot, name))
            if mode:
                triples = near(fmt) + [random.choices(floats(fmt), k=3) for _ in range(130)]
                ins = [(word_type(fmt), NAMES[fmt][1], [t[i] for t in triples]) for i in range(3)]
                f.case(["fma%s.%s %%d, %%a0, %%a1, %%a2;" % (dot, name)], ins, word_type(fmt), NAMES[fmt][1],
                       [x.fma(fmt, *t, rounding) for t in triples])
                ones = floats(fmt, 60)
                one = ((1 << (fmt[1] - 1)) - 1) << fmt[0]
                f.case(["rcp%s.%s %%d, %%a0;" % (dot, name)], [(word_type(fmt), NAMES[fmt][1], ones)], word_type(fmt), NAMES[fmt][1],
                       [x.div(fmt, one, a, rounding) for a in ones])
                f.case(["sqrt%s.%s %%d, %%a0;" % (dot, name)], [(word_type(fmt), NAMES[fmt][1], ones)], word_type(fmt), NAMES[fmt][1],
                       [x.sqrt(fmt, a, rounding) for a in ones])
        binary("min", fmt, lambda a, b: x.minimum(fmt, a, b), "min.%s" % name)
        binary("max", fmt, lambda a, b: x.minimum(fmt, a, b, True), "max.%s" % name)
    for mode in ("rn", "rm", "rz"):
        binary("add", x.F32, lambda a, b: x.add(x.F32, a, b, mode), "add.%s.ftz.f32" % mode, ftz=True)
        binary("mul", x.F32, lambda a, b: x.mul(x.F32, a, b, mode), "mul.%s.ftz.f32" % mode, ftz=True)
    binary("mul", x.F32, lambda a, b: x.mul(x.F32, a, b), "mul.ftz.sat.f32", ftz=True, sat=True)
    binary("add", x.F32, lambda a, b: x.add(x.F32, a, b), "add.sat.f32", sat=True)
    binary("min", x.F32, lambda a, b: x.minimum(x.F32, a, b, False, True), "min.NaN.f32")
    binary("max", x.F32, lambda a, b: x.minimum(x.F32, a, b, True), "max.ftz.f32", ftz=True)
    binary("div", x.F32, lambda a, b: x.div(x.F32, a, b), "div.rn.ftz.f32", ftz=True)
    triples = [random.choices(floats(x.F32, 2), k=3) for _ in range(150)]
    ins = [("f32", 32, [t[i] for t in triples]) for i in range(3)]
    f.case(["min.f32 %d, %a0, %a1, %a2;"], ins, "f32", 32, [x.minimum(x.F32, x.minimum(x.F32, a, b), c) if x.minimum(x.F32, a, b) != x.NAN else
                                                            (x.NAN if x.is_nan(x.F32, c) else c) for a, b, c in triples])
    want = []
    for a, b, c in triples:
        m = x.minimum(x.F32, a & 0x7fffffff, b & 0x7fffffff, True)
        want.append(m if m == x.NAN else m | (a ^ b) & 0x80000000)
    f.case(["max.xorsign.abs.f32 %d, %a0, %a1;"], ins[:2], "f32", 32, want)
    quads = [random.choices([v for v in floats(x.F32, 8) if not x.is_nan(x.F32, v)], k=6) for _ in range(150)]
    wide = [("u64", 64, [q[i] | q[i + 1] << 32 for q in quads]) for i in (0, 2, 4)]
    both = lambda u, v: "*" if x.NAN in (u, v) else u | v << 32
    for mode in ("rn", "rm", "rz"):
        f.case(["fma.%s.f32x2 %%d, %%a0, %%a1, %%a2;" % mode], wide, "u64", 64,
               [both(x.fma(x.F32, q[0], q[2], q[4], mode), x.fma(x.F32, q[1], q[3], q[5], mode)) for q in quads])
        f.case(["add.%s.f32x2 %%d, %%a0, %%a1;" % mode], wide[:2], "u64", 64,
               [both(x.add(x.F32, q[0], q[2], mode), x.add(x.F32, q[1], q[3], mode)) for q in quads])
    for fmt in (x.F16, x.BF16):
        name = NAMES[fmt][0]
        binary("add", fmt, lambda a, b: x.add(fmt, a, b), "add.rn.%s" % name)
        binary("mul", fmt, lambda a, b: x.mul(fmt, a, b), "mul.rn.%s" % name)
        binary("sub", fmt, lambda a, b: x.add(fmt, a, x.negate(fmt, b)) if not x.is_nan(fmt, b) else x.NAN, "sub.rn.%s" % name)
        binary("min", fmt, lambda a, b: x.minimum(fmt, a, b), "min.%s" % name)
        binary("max", fmt, lambda a, b: x.minimum(fmt, a, b, True, True), "max.NaN.%s" % name)
        triples = near(fmt) + [random.choices(floats(fmt), k=3) for _ in range(130)]
        ins = [(word_type(fmt), 16, [t[i] for t in triples]) for i in range(3)]
        f.case(["fma.rn.%s %%d, %%a0, %%a1, %%a2;" % name], ins, word_type(fmt), 16, [x.fma(fmt, *t) for t in triples])
    f.write()


def ulp_words(values, fn, ulps):
    out = []
    for v in values:
        r = fn(v)
        out.append(r if isinstance(r, str) else "%s~%d" % (hex(r), ulps))
    return out


def approximations():
    f = File("approximations")

    def single(v):
        return x.encode(x.F32, x.Fraction(v)) if v == v and abs(v) != math.inf else x.NAN if v != v else x.inf(x.F32, 1 if v < 0 else 0)

    def real(bits):
        return math.nan if x.is_nan(x.F32, bits) else math.copysign(math.inf, -1 if x.sign_of(x.F32, bits) else 1) if x.is_inf(x.F32, bits) \
            else math.copysign(float(x.value(x.F32, bits)), -1 if x.sign_of(x.F32, bits) else 1)

    def case(text, fn, values, ulps):
        f.case([text + " %d, %a0;"], [("f32", 32, values)], "f32", 32, ulp_words(values, fn, ulps))

    def ex2(b):
        v = real(b)
        if v != v:
            return x.NAN
        return single(math.inf if v >= 128 else 0.0 if v < -160 else 2.0 ** v)

    def lg2(b):
        v = real(b)
        return x.NAN if v != v or v < 0 else x.inf(x.F32, 1) if v == 0 else single(math.log2(v) if v != math.inf else v)

    values = floats(x.F32, 20) + [single(random.uniform(-150, 130)) for _ in range(200)] + [single(float(k)) for k in range(-150, 130, 7)]
    case("ex2.approx.f32", ex2, values, 2)
    case("ex2.approx.ftz.f32", lambda b: x.flush(x.F32, ex2(x.flush(x.F32, b))), values, 2)
    positive = floats(x.F32, 60) + [single(random.uniform(0.5, 2)) for _ in range(50)] + [single(1 + k * 2.0 ** -22) for k in range(-8, 9)]
    case("lg2.approx.f32", lg2, positive, 4)
    case("rcp.approx.f32", lambda b: x.div(x.F32, 0x3f800000, b), floats(x.F32, 60), 1)
    case("rcp.approx.ftz.f32", lambda b: x.flush(x.F32, x.div(x.F32, 0x3f800000, x.flush(x.F32, b))), floats(x.F32, 60), 1)
    case("sqrt.approx.f32", lambda b: x.sqrt(x.F32, b), floats(x.F32, 60), 1)

    def rsqrt(b):
        v = real(b)
        if x.is_zero(x.F32, b):
            return x.inf(x.F32, x.sign_of(x.F32, b))
        return x.NAN if v != v or v < 0 else single(1 / math.sqrt(v))

    case("rsqrt.approx.f32", rsqrt, floats(x.F32, 60), 2)
    angles = [0, 0x80000000] + [single(random.uniform(-7, 7)) for _ in range(200)]

    def absolute(fn, error):
        return lambda b: fn(real(b))

    for name, fn in (("sin", math.sin), ("cos", math.cos)):
        for b in angles:
            assert abs(fn(real(b))) <= 1
        # An error of 2^-20.9 is absolute: compare after adding 2, where a unit in the last place is 2^-22.
        f.case(["%s.approx.f32 %%d, %%a0; add.f32 %%d, %%d, 0f40000000;" % name], [("f32", 32, angles)], "f32", 32,
               ["%s~3" % hex(single(fn(real(b)) + 2)) for b in angles])
    values = floats(x.F32, 10) + [single(random.uniform(-9, 9)) for _ in range(100)] + [single(random.uniform(-.1, .1)) for _ in range(60)]
    case("tanh.approx.f32", lambda b: x.NAN if real(b) != real(b) else single(math.copysign(math.tanh(real(b)), real(b)))
         if abs(real(b)) > 1e-30 else x.NAN if False else b, values, 1 << 12)
    values = [v for v in floats(x.F64, 40) if (v >> 52 & 0x7ff) != 0 and v << 1 & (1 << 64) - 1 != 0xffe0000000000002]
    want = []
    for v in values:
        r = x.div(x.F64, 1023 << 52, v & ~0xffffffff)
        r = r if r == x.NAN else x.flush(x.F64, r)
        want.append(r if r == x.NAN else "%s~%d" % (hex(r), 1 << 33))
    f.case(["rcp.approx.ftz.f64 %d, %a0;"], [("f64", 64, values)], "f64", 64, want)
    f.write()
