#!/usr/bin/env python3
"""Writes tests/ptx/*.ptx that are made of one small kernel per instruction form: edge values in, expected words out.

Expected values come from exact.py and plain integers, never from the translator. Run from the root:
    python3 tests/ptx/generate.py
The files are kept in the repository; what is written by hand stays untouched."""
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(__file__))
import exact as x

HERE = os.path.dirname(os.path.abspath(__file__))
random.seed(20160421)

REG = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}


def words(values):
    return " ".join(v if isinstance(v, str) else hex(v) for v in values)


class File:
    def __init__(self, name):
        self.path = os.path.join(HERE, name + ".ptx")
        self.text = ["// Written by generate.py.", ".version 8.0", ".target sm_80", ".address_size 64", ""]
        self.count = 0

    def case(self, lines, ins, out_type, out_bits, expected, out_code=None, declare=()):
        """One thread per word: ins are (type, bits, values), read into %a0, %a1, ...; the result is in %d."""
        name = "k%d" % self.count
        self.count += 1
        n = len(expected)
        t = self.text
        t.append("//! run %s block=%d" % (name, n))
        for kind, bits, values in ins:
            assert len(values) == n
            t.append("//! in %s: %s" % (kind, words(values)))
        t.append("//! out %s: %s" % (out_type, words(expected)))
        params = ", ".join(".param .u64 p%d" % i for i in range(len(ins) + 1))
        t.append(".visible .entry %s(%s)\n{" % (name, params))
        t.append(".reg .b64 %p, %o; .reg .b32 %t; .reg .pred %q, %q1;")
        for i, (kind, bits, values) in enumerate(ins):
            t.append(".reg .%s %%a%d;" % (REG[bits], i))
        t.append(".reg .%s %%d;" % REG[out_bits])
        t.extend(declare)
        t.append("mov.u32 %t, %tid.x;")
        for i, (kind, bits, values) in enumerate(ins):
            t.append("ld.param.u64 %%p, [p%d]; mul.wide.u32 %%o, %%t, %d; add.u64 %%p, %%p, %%o; ld.global.b%d %%a%d, [%%p];"
                     % (i, bits // 8, bits, i))
        t.extend(lines)
        t.append("ld.param.u64 %%p, [p%d]; mul.wide.u32 %%o, %%t, %d; add.u64 %%p, %%p, %%o; st.global.b%d [%%p], %%d;"
                 % (len(ins), out_bits // 8, out_bits))
        t.append("ret;\n}\n")

    def write(self):
        with open(self.path, "w") as f:
            f.write("\n".join(self.text))


def floats(fmt, extra=8):
    m, e = fmt
    sign = 1 << (m + e)
    bias = (1 << (e - 1)) - 1
    one = bias << m
    base = [0, 1, (1 << m) - 1, 1 << m, one, one + 1, one - 1, one + (1 << (m - 1)), (bias + 1) << m, (bias - 1) << m,
            x.inf(fmt, 0) - 1, x.inf(fmt, 0), x.inf(fmt, 0) + 1, x.inf(fmt, 0) | 1 << (m - 1)]
    base += [random.getrandbits(m + e) for _ in range(extra)]
    return base + [b | sign for b in base]


def pairs(values, n=600):
    every = [(a, b) for a in values for b in values]
    random.shuffle(every)
    return every[:n]


def near(fmt, n=60):
    """Triples whose product and addend nearly cancel, or lie far apart."""
    out = []
    m, e = fmt
    bias = (1 << (e - 1)) - 1
    for _ in range(n):
        a = (bias + random.randint(-3, 3)) << m | random.getrandbits(m)
        b = (bias + random.randint(-3, 3)) << m | random.getrandbits(m) | random.getrandbits(1) << (m + e)
        c = x.negate(fmt, x.mul(fmt, a, b))
        out.append((a, b, c + random.choice([0, 0, 1, -1])))
        shift = random.choice([m + 1, m + 2, 2 * m, m])
        c = max(1, min((1 << e) - 2, bias + random.choice([-1, 1]) * shift)) << m | random.choice([0, 1, random.getrandbits(m)])
        out.append((a, b, c | random.getrandbits(1) << (m + e)))
    return out


NAMES = {x.F32: ("f32", 32), x.F64: ("f64", 64), x.F16: ("f16", 16), x.BF16: ("bf16", 16)}


def word_type(fmt):
    return {x.F32: "f32", x.F64: "f64", x.F16: "f16", x.BF16: "b16"}[fmt]


def blocks(seq, n=512):
    for i in range(0, len(seq), n):
        yield seq[i:i + n]


def saturated(fmt, bits):
    if bits == x.NAN or x.sign_of(fmt, bits):
        return 0
    one = ((1 << (fmt[1] - 1)) - 1) << fmt[0]
    return min(bits, one)


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


def conversions():
    f = File("conversions")
    integers = {(8, 0): "u8", (8, 1): "s8", (16, 0): "u16", (16, 1): "s16", (32, 0): "u32", (32, 1): "s32", (64, 0): "u64", (64, 1): "s64"}
    for fmt in (x.F32, x.F64):
        name, bits = NAMES[fmt]
        bias, m = (1 << (fmt[1] - 1)) - 1, fmt[0]
        values = floats(fmt, 20)
        for power in (6, 7, 8, 14, 15, 16, 30, 31, 32, 62, 63, 64):
            top = (bias + power) << m
            values += [top, top - 1, top + 1, top | 1 << (m + fmt[1]), (top - 1) | 1 << (m + fmt[1]), (top + 1) | 1 << (m + fmt[1])]
        for half in (1, 3, 5, 7, 255, 257):
            h = x.encode(fmt, x.Fraction(half, 2))
            values += [h, h | 1 << (m + fmt[1]), h + 1, h - 1]
        for (ibits, signed), iname in integers.items():
            for mode in ("rni", "rzi", "rmi", "rpi"):
                reg = max(16, ibits)
                want = [x.to_integer(fmt, v, ibits, signed, mode) & ((1 << reg) - 1) for v in values]
                f.case(["cvt.%s.%s.%s %%d, %%a0;" % (mode, iname, name)], [(word_type(fmt), bits, values)], "u%d" % reg, reg, want)
        for mode in ("rni", "rzi", "rmi", "rpi"):
            f.case(["cvt.%s.%s.%s %%d, %%a0;" % (mode, name, name)], [(word_type(fmt), bits, values)], word_type(fmt), bits,
                   [x.to_integral(fmt, v, mode) for v in values])
        for (ibits, signed), iname in integers.items():
            if ibits == 8:
                continue
            ints = [0, 1, 2, (1 << ibits) - 1, 1 << (ibits - 1), (1 << (ibits - 1)) - 1] + [random.getrandbits(ibits) for _ in range(20)]
            ints += [v & ((1 << ibits) - 1) for k in (24, 25, 53, 54) for v in ((1 << k) + 1, (1 << k) - 1, (3 << k) + 1, -(1 << k) - 1)]
            for mode in ("rn", "rz", "rm", "rp"):
                want = []
                for v in ints:
                    number = v - (1 << ibits) if signed and v >> (ibits - 1) else v
                    want.append(x.encode(fmt, x.Fraction(number), mode))
                f.case(["cvt.%s.%s.%s %%d, %%a0;" % (mode, name, iname)], [("u%d" % ibits, ibits, ints)], word_type(fmt), bits, want)
    doubles = floats(x.F64, 30) + [x.convert(x.F64, x.F32, v) for v in floats(x.F32, 10) if not x.is_nan(x.F32, v)]
    doubles += [d + k for d in doubles[:20] for k in (1,) if not x.is_nan(x.F64, d + k)]
    for power in (-151, -150, -149, -148, -127, -126, 127, 128):
        for extra in (0, 1, 1 << 28, 1 << 29, (1 << 28) + 1, 3 << 28):
            doubles += [(1023 + power) << 52 | extra, 1 << 63 | (1023 + power) << 52 | extra]
    for mode in ("rn", "rz", "rm", "rp"):
        f.case(["cvt.%s.f32.f64 %%d, %%a0;" % mode], [("f64", 64, doubles)], "f32", 32, [x.convert(x.F32, x.F64, v, mode) for v in doubles])
    singles = floats(x.F32, 60)
    for power in (-26, -25, -24, -15, -14, 15, 16):
        for extra in (0, 1, 1 << 12, 1 << 13, (1 << 12) + 1, 3 << 12):
            singles += [(127 + power) << 23 | extra, 1 << 31 | (127 + power) << 23 | extra]
    f.case(["cvt.f64.f32 %d, %a0;"], [("f32", 32, singles)], "f64", 64, [x.convert(x.F64, x.F32, v) for v in singles])
    for fmt in (x.F16, x.BF16):
        name = NAMES[fmt][0]
        for mode in ("rn", "rz"):
            f.case(["cvt.%s.%s.f32 %%d, %%a0;" % (mode, name)], [("f32", 32, singles)], word_type(fmt), 16,
                   [x.convert(fmt, x.F32, v, mode) for v in singles])
        halves = floats(fmt, 60)
        f.case(["cvt.f32.%s %%d, %%a0;" % name], [(word_type(fmt), 16, halves)], "f32", 32, [x.convert(x.F32, fmt, v) for v in halves])
        lows = singles[::-1]
        want = []
        for a, b in zip(singles, lows):
            high, low = x.convert(fmt, x.F32, a), x.convert(fmt, x.F32, b)
            want.append("*" if x.NAN in (high, low) else high << 16 | low)
        f.case(["cvt.rn.%sx2.f32 %%d, %%a0, %%a1;" % name], [("f32", 32, singles), ("f32", 32, lows)], "u32", 32, want)
    f.case(["cvt.rn.f16.f64 %d, %a0;"], [("f64", 64, doubles)], "f16", 16, [x.convert(x.F16, x.F64, v) for v in doubles])
    E4M3, E5M2 = (3, 4), (2, 5)

    def byte(fmt, kind, v):
        """Saturating; E4M3 has no infinities, and its largest exponent holds numbers."""
        largest = 0x7e if kind == E4M3 else 0x7b
        if x.is_nan(fmt, v):
            return 0x7f
        sign = x.sign_of(fmt, v) << 7
        if x.is_inf(fmt, v):
            return sign | largest
        a = abs(x.value(fmt, v))
        best, distance = 0, None
        for code in range(largest + 1):
            exponent, fraction = code >> kind[0], code & ((1 << kind[0]) - 1)
            bias = (1 << kind[1] - 1) - 1
            number = x.Fraction(fraction) * x.Fraction(2) ** (1 - bias - kind[0]) if exponent == 0 else \
                x.Fraction(fraction + (1 << kind[0])) * x.Fraction(2) ** (exponent - bias - kind[0])
            d = abs(a - number)
            if distance is None or d < distance or (d == distance and code % 2 == 0):
                best, distance = code, d
        return sign | best

    eights = singles[::3] + [x.encode(x.F32, x.Fraction(k, 64)) for k in range(1, 90, 2)] + [x.encode(x.F32, x.Fraction(k)) for k in (240, 247, 248, 249, 432, 448, 464, 465, 57344, 61440, 61441)]
    low = eights[::-1]
    for kind, name in ((E4M3, "e4m3"), (E5M2, "e5m2")):
        f.case(["cvt.rn.satfinite.%sx2.f32 %%d, %%a0, %%a1;" % name], [("f32", 32, eights), ("f32", 32, low)], "u16", 16,
               [byte(x.F32, kind, a) << 8 | byte(x.F32, kind, b) for a, b in zip(eights, low)])
        codes = list(range(256))

        def half(code):
            if kind == E4M3:
                if code & 0x7f == 0x7f:
                    return None
                exponent, fraction = code >> 3 & 15, code & 7
                number = x.Fraction(fraction, 512) if exponent == 0 else x.Fraction(8 + fraction, 8) * x.Fraction(2) ** (exponent - 7)
                return x.encode(x.F16, -number if code >> 7 else number, "rn", code >> 7)
            return None if code & 0x7f > 0x7c else code << 8

        f.case(["cvt.rn.f16x2.%sx2 %%d, %%a0;" % name], [("u16", 16, [c << 8 | 255 - c for c in codes])], "u32", 32,
               ["*" if half(c) is None or half(255 - c) is None else half(c) << 16 | half(255 - c) for c in codes])
    ints = [0, 1, 2047, 2048, 2049, 2051, 65504, 65519, 65520, 65535, (1 << 32) - 1, 1 << 31]
    f.case(["cvt.rn.f16.u32 %d, %a0;"], [("u32", 32, ints)], "f16", 16, [x.encode(x.F16, x.Fraction(v)) for v in ints])
    f.case(["cvt.sat.f32.f32 %d, %a0;"], [("f32", 32, singles)], "f32", 32,
           [saturated(x.F32, v if not x.is_nan(x.F32, v) else x.NAN) for v in singles])
    values = [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0xffffff80, 0xffff8000, 0xffffff7f]

    def signed(v, bits):
        v &= (1 << bits) - 1
        return v - (1 << bits) if v >> (bits - 1) else v

    for to, tbits, tsigned in (("u8", 8, 0), ("s8", 8, 1), ("u16", 16, 0), ("s16", 16, 1), ("u32", 32, 0), ("s32", 32, 1), ("u64", 64, 0), ("s64", 64, 1)):
        for source, ssigned, sbits in (("u32", 0, 32), ("s32", 1, 32), ("u16", 0, 16), ("s8", 1, 8), ("u8", 0, 8)):
            for sat in ("", ".sat"):
                want = []
                reg = max(16, tbits)
                for v in values:
                    number = signed(v, sbits) if ssigned else v & ((1 << sbits) - 1)
                    if sat:
                        low, high = (-(1 << (tbits - 1)), (1 << (tbits - 1)) - 1) if tsigned else (0, (1 << tbits) - 1)
                        number = max(low, min(high, number))
                    else:
                        number = signed(number, tbits) if tsigned else number & ((1 << tbits) - 1)
                    want.append(number & ((1 << reg) - 1))
                f.case(["cvt%s.%s.%s %%d, %%a0;" % (sat, to, source)], [("u32", 32, values)], "u%d" % reg, reg, want)
    f.write()


def comparisons():
    f = File("comparisons")
    tests = {"eq": lambda l, e, g, u: e, "ne": lambda l, e, g, u: l or g, "lt": lambda l, e, g, u: l, "le": lambda l, e, g, u: l or e,
             "gt": lambda l, e, g, u: g, "ge": lambda l, e, g, u: g or e, "equ": lambda l, e, g, u: e or u,
             "neu": lambda l, e, g, u: l or g or u, "ltu": lambda l, e, g, u: l or u, "leu": lambda l, e, g, u: l or e or u,
             "gtu": lambda l, e, g, u: g or u, "geu": lambda l, e, g, u: g or e or u, "num": lambda l, e, g, u: not u,
             "nan": lambda l, e, g, u: u}
    for fmt in (x.F32, x.F64, x.F16):
        name, bits = NAMES[fmt]
        ps = pairs(floats(fmt, 1), 150)
        ins = [(word_type(fmt), bits, [p[0] for p in ps]), (word_type(fmt), bits, [p[1] for p in ps])]
        for test, fn in tests.items():
            want = []
            for a, b in ps:
                u = x.is_nan(fmt, a) or x.is_nan(fmt, b)
                l = not u and x.less(fmt, a, b)
                g = not u and x.less(fmt, b, a)
                want.append(1 if fn(l, not u and not l and not g, g, u) else 0)
            f.case(["setp.%s.%s %%q, %%a0, %%a1; selp.u32 %%d, 1, 0, %%q;" % (test, name)], ins, "u32", 32, want)
    for bits in (16, 32, 64):
        edge = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1]
        ps = [(a, b) for a in edge for b in edge]
        ins = [("u%d" % bits, bits, [p[0] for p in ps]), ("u%d" % bits, bits, [p[1] for p in ps])]
        for sign in "us":
            conv = (lambda v: v - (1 << bits) if v >> (bits - 1) else v) if sign == "s" else (lambda v: v)
            names = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
                     "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
            if sign == "u":
                names.update({"lo": names["lt"], "ls": names["le"], "hi": names["gt"], "hs": names["ge"]})
            for test, fn in names.items():
                f.case(["setp.%s.%c%d %%q, %%a0, %%a1; selp.u32 %%d, 1, 0, %%q;" % (test, sign, bits)], ins, "u32", 32,
                       [1 if fn(conv(a), conv(b)) else 0 for a, b in ps])
    halves = floats(x.F16, 6)
    others = halves[::-1]
    both = [(a | b << 16, c | d << 16) for a, b, c, d in zip(halves, others, others, halves[3:] + halves[:3])]
    less = lambda p: [not x.is_nan(x.F16, u) and not x.is_nan(x.F16, v) and x.less(x.F16, u, v)
                      for u, v in ((p[0] & 0xffff, p[1] & 0xffff), (p[0] >> 16, p[1] >> 16))]
    ins = [("u32", 32, [p[0] for p in both]), ("u32", 32, [p[1] for p in both])]
    f.case(["set.lt.f16x2.f16x2 %d, %a0, %a1;"], ins, "u32", 32, [0x3c00 * l[0] + (0x3c00 * l[1] << 16) for l in map(less, both)])
    f.case(["set.lt.u32.f16x2 %d, %a0, %a1;"], ins, "u32", 32, [0xffff * l[0] + (0xffff * l[1] << 16) for l in map(less, both)])
    f.case(["setp.lt.f16x2 %q|%q1, %a0, %a1; selp.u32 %d, 1, 0, %q; @%q1 add.u32 %d, %d, 2;"], ins, "u32", 32, [l[0] + 2 * l[1] for l in map(less, both)])
    ins = [("f16", 16, halves), ("f16", 16, others)]
    want = [not x.is_nan(x.F16, u) and not x.is_nan(x.F16, v) and x.less(x.F16, u, v) for u, v in zip(halves, others)]
    f.case(["set.lt.f16.f16 %d, %a0, %a1;"], ins, "u16", 16, [0x3c00 * w for w in want])
    f.case(["set.geu.u16.f16 %d, %a0, %a1;"], ins, "u16", 16, [0xffff * (not w) for w in want])
    a, b = [0, 1, 5, 5, 7], [0, 2, 4, 5, 1]
    f.case(["setp.ne.u32 %q1, %a0, 5; setp.lt.and.u32 %q|%q1, %a0, %a1, %q1; selp.u32 %d, 1, 0, %q; @%q1 add.u32 %d, %d, 2;"],
           [("u32", 32, a), ("u32", 32, b)], "u32", 32,
           [(1 if v != 5 and v < w else 0) + (2 if v != 5 and not v < w else 0) for v, w in zip(a, b)])
    f.case(["setp.ne.u32 %q1, %a0, 5; setp.lt.xor.u32 %q, %a0, %a1, !%q1; selp.u32 %d, 1, 0, %q;"], [("u32", 32, a), ("u32", 32, b)], "u32", 32,
           [1 if (v < w) != (v == 5) else 0 for v, w in zip(a, b)])
    f.case(["set.lt.u32.s32 %d, %a0, %a1;"], [("u32", 32, a), ("u32", 32, b)], "u32", 32, [0xffffffff if v < w else 0 for v, w in zip(a, b)])
    f.case(["set.lt.f32.u32 %d, %a0, %a1;"], [("u32", 32, a), ("u32", 32, b)], "u32", 32, [0x3f800000 if v < w else 0 for v, w in zip(a, b)])
    c = [0, 1, 0x80000000, 0xffffffff, 0x7fffffff]
    f.case(["slct.u32.s32 %d, %a0, %a1, %a2;"], [("u32", 32, a), ("u32", 32, b), ("u32", 32, c)], "u32", 32,
           [v if not w >> 31 else u for v, u, w in zip(a, b, c)])
    f.write()


def integers():
    f = File("integers")

    def edge(bits):
        return [0, 1, 2, 3, 7, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1,
                random.getrandbits(bits), random.getrandbits(bits), random.getrandbits(bits // 2)]

    def signed(v, bits):
        v &= (1 << bits) - 1
        return v - (1 << bits) if v >> (bits - 1) else v

    def number(v, bits, sign):
        return signed(v, bits) if sign == "s" else v & ((1 << bits) - 1)

    def run(text, bits, fn, operands=2, out=None, n=169, values=None):
        out = out or bits
        tuples = values or [tuple(random.choice(edge(bits)) for _ in range(operands)) for _ in range(n)]
        ins = [("u%d" % bits, bits, [t[i] for t in tuples]) for i in range(operands)]
        code = text + " %d, " + ", ".join("%%a%d" % i for i in range(operands)) + ";"
        f.case([code], ins, "u%d" % out, out, [fn(*t) & ((1 << out) - 1) for t in tuples])

    def cut(a, b):
        q = abs(a) // abs(b)
        return -q if (a < 0) != (b < 0) else q

    for bits in (16, 32, 64):
        for sign in "us":
            n = lambda v: number(v, bits, sign)
            ty = "%c%d" % (sign, bits)
            run("add." + ty, bits, lambda a, b: a + b)
            run("sub." + ty, bits, lambda a, b: a - b)
            run("mul.lo." + ty, bits, lambda a, b: a * b)
            run("mul.hi." + ty, bits, lambda a, b: n(a) * n(b) >> bits)
            run("mad.lo." + ty, bits, lambda a, b, c: a * b + c, 3)
            run("mad.hi." + ty, bits, lambda a, b, c: (n(a) * n(b) >> bits) + c, 3)
            if bits < 64:
                run("mul.wide." + ty, bits, lambda a, b: n(a) * n(b), out=2 * bits)
            run("min." + ty, bits, lambda a, b: min(n(a), n(b)))
            run("max." + ty, bits, lambda a, b: max(n(a), n(b)))
            safe = [(a, b) for a in edge(bits) for b in edge(bits) if b and not (sign == "s" and n(a) == -(1 << (bits - 1)) and n(b) == -1)]
            run("div." + ty, bits, lambda a, b: cut(n(a), n(b)), values=safe)
            run("rem." + ty, bits, lambda a, b: n(a) - n(b) * cut(n(a), n(b)), values=safe)
            run("sad." + ty, bits, lambda a, b, c: c + abs(n(a) - n(b)), 3)
        s = lambda v: signed(v, bits)
        run("abs.s%d" % bits, bits, lambda a: abs(s(a)), 1)
        run("neg.s%d" % bits, bits, lambda a: -s(a), 1)
        for op, fn in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
            run("%s.b%d" % (op, bits), bits, fn)
        run("not.b%d" % bits, bits, lambda a: ~a, 1)
        run("cnot.b%d" % bits, bits, lambda a: 1 if a == 0 else 0, 1)
        counts = [0, 1, 5, bits - 1, bits, bits + 1, 255, 0xffffffff]
        ps = [(a, c) for a in edge(bits) for c in counts]
        ins = [("u%d" % bits, bits, [p[0] for p in ps]), ("u32", 32, [p[1] for p in ps])]
        clamp = lambda c: min(c, bits)
        mask = (1 << bits) - 1
        f.case(["shl.b%d %%d, %%a0, %%a1;" % bits], ins, "u%d" % bits, bits, [a << clamp(c) & mask for a, c in ps])
        f.case(["shr.u%d %%d, %%a0, %%a1;" % bits], ins, "u%d" % bits, bits, [a >> clamp(c) for a, c in ps])
        f.case(["shr.s%d %%d, %%a0, %%a1;" % bits], ins, "u%d" % bits, bits, [s(a) >> clamp(c) & mask for a, c in ps])
    sat = lambda v: max(-(1 << 31), min((1 << 31) - 1, v))
    run("add.sat.s32", 32, lambda a, b: sat(signed(a, 32) + signed(b, 32)))
    run("sub.sat.s32", 32, lambda a, b: sat(signed(a, 32) - signed(b, 32)))
    run("mul24.lo.u32", 32, lambda a, b: (a & 0xffffff) * (b & 0xffffff))
    run("mul24.hi.s32", 32, lambda a, b: signed(a, 24) * signed(b, 24) >> 16)
    run("mad24.lo.s32", 32, lambda a, b, c: signed(a, 24) * signed(b, 24) + c, 3)
    for sign in "us":
        pairs_ = [(random.choice(edge(32)), random.choice(edge(32)), random.choice(edge(64))) for _ in range(100)]
        f.case(["mad.wide.%c32 %%d, %%a0, %%a1, %%a2;" % sign],
               [("u32", 32, [p[0] for p in pairs_]), ("u32", 32, [p[1] for p in pairs_]), ("u64", 64, [p[2] for p in pairs_])], "u64", 64,
               [(number(a, 32, sign) * number(b, 32, sign) + c) & (1 << 64) - 1 for a, b, c in pairs_])
    for bits in (32, 64):
        values = edge(bits) + [1 << k for k in range(0, bits, 5)]
        ins = [("u%d" % bits, bits, values)]
        f.case(["popc.b%d %%d, %%a0;" % bits], ins, "u32", 32, [bin(v).count("1") for v in values])
        f.case(["clz.b%d %%d, %%a0;" % bits], ins, "u32", 32, [bits - v.bit_length() for v in values])
        f.case(["brev.b%d %%d, %%a0;" % bits], ins, "u%d" % bits, bits, [int(bin(v)[2:].zfill(bits)[::-1], 2) for v in values])
        f.case(["bfind.u%d %%d, %%a0;" % bits], ins, "u32", 32, [(v.bit_length() - 1) & 0xffffffff for v in values])
        f.case(["bfind.shiftamt.u%d %%d, %%a0;" % bits], ins, "u32", 32, [bits - v.bit_length() if v else 0xffffffff for v in values])
        f.case(["bfind.s%d %%d, %%a0;" % bits], ins, "u32", 32,
               [((~v & (1 << bits) - 1 if v >> (bits - 1) else v).bit_length() - 1) & 0xffffffff for v in values])
        quads = [(random.choice(edge(bits)), random.choice(edge(bits)), random.choice([0, 1, 7, bits - 1, bits, 200, 255, 256 + 3]),
                  random.choice([0, 1, 8, bits - 1, bits, 255, 256 + 4])) for _ in range(300)]

        def bfe(a, pos, length, sign):
            pos, length = pos & 255, length & 255
            last = bits - 1
            fill = 0 if sign == "u" or length == 0 else a >> min(pos + length - 1, last) & 1
            d = 0
            for i in range(bits):
                d |= (a >> (pos + i) & 1 if i < length and pos + i <= last else fill) << i
            return d

        def bfi(a, b, pos, length):
            pos, length = pos & 255, length & 255
            for i in range(length):
                if pos + i < bits:
                    b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
            return b

        for sign in "us":
            f.case(["bfe.%c%d %%d, %%a0, %%a1, %%a2;" % (sign, bits)], [("u%d" % bits, bits, [q[0] for q in quads]),
                   ("u32", 32, [q[2] for q in quads]), ("u32", 32, [q[3] for q in quads])], "u%d" % bits, bits,
                   [bfe(a, p, l, sign) for a, b, p, l in quads])
        f.case(["bfi.b%d %%d, %%a0, %%a1, %%a2, %%a3;" % bits], [("u%d" % bits, bits, [q[0] for q in quads]), ("u%d" % bits, bits, [q[1] for q in quads]),
               ("u32", 32, [q[2] for q in quads]), ("u32", 32, [q[3] for q in quads])], "u%d" % bits, bits, [bfi(*q) for q in quads])
    for table in (0x00, 0xff, 0xe8, 0x96, 0xca, 0x80, 0xfe, 0x1b, 0x6a):
        run_values = [tuple(random.getrandbits(32) for _ in range(3)) for _ in range(20)]

        def lop3(a, b, c):
            d = 0
            for i in range(32):
                index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
                d |= (table >> index & 1) << i
            return d

        f.case(["lop3.b32 %%d, %%a0, %%a1, %%a2, %d;" % table], [("u32", 32, [t[i] for t in run_values]) for i in range(3)], "u32", 32,
               [lop3(*t) for t in run_values])

    def prmt(a, b, c):
        data = [(b << 32 | a) >> (8 * i) & 255 for i in range(8)]
        d = 0
        for i in range(4):
            s = c >> (4 * i) & 15
            byte = data[s & 7]
            d |= ((255 if byte >> 7 else 0) if s & 8 else byte) << (8 * i)
        return d

    triples = [tuple(random.getrandbits(32) for _ in range(3)) for _ in range(100)]
    ins = [("u32", 32, [t[i] for t in triples]) for i in range(3)]
    f.case(["prmt.b32 %d, %a0, %a1, %a2;"], ins, "u32", 32, [prmt(*t) for t in triples])
    for mode, table in (("f4e", (0x3210, 0x4321, 0x5432, 0x6543)), ("b4e", (0x5670, 0x6701, 0x7012, 0x0123)), ("rc8", (0, 0x1111, 0x2222, 0x3333)),
                        ("ecl", (0x3210, 0x3211, 0x3222, 0x3333)), ("ecr", (0, 0x1110, 0x2210, 0x3210)), ("rc16", (0x1010, 0x3232, 0x1010, 0x3232))):
        f.case(["prmt.b32.%s %%d, %%a0, %%a1, %%a2;" % mode], ins, "u32", 32, [prmt(a, b, table[c & 3]) for a, b, c in triples])
    shifts = [(random.getrandbits(32), random.getrandbits(32), c) for c in (0, 1, 15, 31, 32, 33, 63, 64, 255)]
    ins = [("u32", 32, [t[i] for t in shifts]) for i in range(3)]
    for mode, amount in (("wrap", lambda c: c & 31), ("clamp", lambda c: min(c, 32))):
        f.case(["shf.l.%s.b32 %%d, %%a0, %%a1, %%a2;" % mode], ins, "u32", 32, [(b << 32 | a) << amount(c) >> 32 & 0xffffffff for a, b, c in shifts])
        f.case(["shf.r.%s.b32 %%d, %%a0, %%a1, %%a2;" % mode], ins, "u32", 32, [(b << 32 | a) >> amount(c) & 0xffffffff for a, b, c in shifts])
    byte = lambda v, i, s: signed(v >> (8 * i), 8) if s else v >> (8 * i) & 255
    half = lambda v, i, s: signed(v >> (16 * i), 16) if s else v >> (16 * i) & 0xffff
    ins = [("u32", 32, [t[i] for t in triples]) for i in range(3)]
    for sa, na in ((0, "u32"), (1, "s32")):
        for sb, nb in ((0, "u32"), (1, "s32")):
            f.case(["dp4a.%s.%s %%d, %%a0, %%a1, %%a2;" % (na, nb)], ins, "u32", 32,
                   [(sum(byte(a, i, sa) * byte(b, i, sb) for i in range(4)) + c) & 0xffffffff for a, b, c in triples])
            for part, base in (("lo", 0), ("hi", 2)):
                f.case(["dp2a.%s.%s.%s %%d, %%a0, %%a1, %%a2;" % (part, na, nb)], ins, "u32", 32,
                       [(sum(half(a, i, sa) * byte(b, base + i, sb) for i in range(2)) + c) & 0xffffffff for a, b, c in triples])
    for sa, na in ((0, "u32"), (1, "s32")):
        difference = lambda a, b, i: abs(byte(a, i, sa) - byte(b, i, sa))
        f.case(["vabsdiff4.u32.%s.%s %%d, %%a0, %%a1, %%a2;" % (na, na)], ins, "u32", 32,
               [sum((difference(a, b, i) & 255) << 8 * i for i in range(4)) for a, b, c in triples])
        f.case(["vabsdiff4.u32.%s.%s.add %%d, %%a0, %%a1, %%a2;" % (na, na)], ins, "u32", 32,
               [(c + sum(difference(a, b, i) for i in range(4))) & 0xffffffff for a, b, c in triples])
    for op, sa, fn in (("add.u16x2", 0, lambda a, b: a + b), ("min.s16x2", 1, min), ("max.u16x2", 0, max), ("max.s16x2", 1, max),
                       ("min.relu.s16x2", 1, lambda a, b: max(0, min(a, b)))):
        f.case(["%s %%d, %%a0, %%a1;" % op], ins[:2], "u32", 32,
               [sum((fn(half(a, i, sa), half(b, i, sa)) & 0xffff) << 16 * i for i in range(2)) for a, b, c in triples])
    wide = [tuple(random.choice(edge(64)) for _ in range(2)) for _ in range(100)]
    low, high = (lambda v: v & 0xffffffff), (lambda v: v >> 32)
    ins = [("u64", 64, [t[0] for t in wide]), ("u64", 64, [t[1] for t in wide])]
    split = "mov.b64 {%l0, %h0}, %a0; mov.b64 {%l1, %h1}, %a1;"
    regs = [".reg .b32 %l0, %h0, %l1, %h1, %l, %h;"]
    f.case([split, "add.cc.u32 %l, %l0, %l1; addc.u32 %h, %h0, %h1; mov.b64 %d, {%l, %h};"], ins, "u64", 64,
           [(a + b) & (1 << 64) - 1 for a, b in wide], declare=regs)
    f.case([split, "sub.cc.u32 %l, %l0, %l1; subc.cc.u32 %h, %h0, %h1; mov.b64 %d, {%l, %h};"], ins, "u64", 64,
           [(a - b) & (1 << 64) - 1 for a, b in wide], declare=regs)
    f.case([split, "mul.lo.u32 %l, %l0, %l1; mul.hi.u32 %h, %l0, %l1; mad.lo.cc.u32 %l, %l0, 0xffffffff, %l; madc.hi.u32 %h, %l0, 0xffffffff, %h;"
            " mov.b64 %d, {%l, %h};"], ins, "u64", 64, [(low(a) * low(b) + low(a) * 0xffffffff) & (1 << 64) - 1 for a, b in wide], declare=regs)
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


def warps():
    f = File("warps")
    n = 64
    data = [random.getrandbits(32) for _ in range(n)]

    def shfl(mode, lane, b, c):
        b, segment, bound = b & 31, c >> 8 & 31, c & 31
        most = lane & segment | bound & ~segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lane & segment | b & ~segment & 31}[mode]
        return (j, True) if (j >= most if mode == "up" else j <= most) else (lane, False)

    def both(text, mode, bs, cs, b_text, c_text, ins):
        want = []
        for t in range(n):
            lane, base = t & 31, t & ~31
            j, inside = shfl(mode, lane, bs[t], cs[t])
            want.append((data[base + j] & 0xfffffffe) | (1 if inside else 0))
        f.case(["shfl.sync.%s.b32 %%d|%%q, %%a0, %s, %s, 0xffffffff; and.b32 %%d, %%d, 0xfffffffe; @%%q or.b32 %%d, %%d, 1;" % (mode, b_text, c_text)],
               [("u32", 32, data)] + ins, "u32", 32, want)

    for mode, default in (("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)):
        for b in (0, 1, 3, 16, 31, 33):
            for segment in (0, 16, 24, 28):
                c = segment << 8 | (0 if mode == "up" else 31)
                both("", mode, [b] * n, [c] * n, str(b), str(c), [])
        bs = [random.randrange(32) for _ in range(n)]
        both("", mode, bs, [default] * n, "%a1", str(default), [("u32", 32, bs)])
        cs = [random.choice([0, 16, 24]) << 8 | default for _ in range(n)]
        both("", mode, bs, cs, "%a1", "%a2", [("u32", 32, bs), ("u32", 32, cs)])
    bits = [1 if random.random() < .5 else 0 for _ in range(n)]
    for name, pattern in (("mixed", bits), ("all", [1] * n), ("none", [0] * n), ("half", [1] * 32 + [0] * 32)):
        ballots = [sum(pattern[base + k] << k for k in range(32)) for base in (0, 32)]
        setp = "setp.ne.u32 %q, %a0, 0;"
        f.case([setp, "vote.sync.ballot.b32 %d, %q, 0xffffffff;"], [("u32", 32, pattern)], "u32", 32, [ballots[t // 32] for t in range(n)])
        f.case([setp, "vote.sync.ballot.b32 %d, !%q, 0xffffffff;"], [("u32", 32, pattern)], "u32", 32, [~ballots[t // 32] & 0xffffffff for t in range(n)])
        for mode, fn in (("all", lambda v: v == 0xffffffff), ("any", lambda v: v != 0), ("uni", lambda v: v in (0, 0xffffffff))):
            f.case([setp, "vote.sync.%s.pred %%q1, %%q, 0xffffffff; selp.u32 %%d, 1, 0, %%q1;" % mode], [("u32", 32, pattern)], "u32", 32,
                   [1 if fn(ballots[t // 32]) else 0 for t in range(n)])
    few = [random.randrange(4) for _ in range(32)] + [7] * 32
    same = [sum(1 << k for k in range(32) if few[(t & ~31) + k] == few[t]) for t in range(n)]
    f.case(["match.any.sync.b32 %d, %a0, 0xffffffff;"], [("u32", 32, few)], "u32", 32, same)
    f.case(["match.all.sync.b32 %d|%q, %a0, 0xffffffff; @!%q mov.u32 %d, 5;"], [("u32", 32, few)], "u32", 32,
           [5 if t < 32 else 0xffffffff for t in range(n)])
    wide = [v << 33 for v in few]
    f.case(["match.any.sync.b64 %d, %a0, 0xffffffff;"], [("u64", 64, wide)], "u32", 32, same)
    signed = lambda v: v - (1 << 32) if v >> 31 else v
    halves = [data[:32], data[32:]]
    for op, fn in (("add.u32", sum), ("min.u32", min), ("max.u32", max), ("min.s32", lambda v: min(map(signed, v))), ("max.s32", lambda v: max(map(signed, v))),
                   ("and.b32", lambda v: __import__("functools").reduce(lambda a, b: a & b, v)), ("or.b32", lambda v: __import__("functools").reduce(lambda a, b: a | b, v)),
                   ("xor.b32", lambda v: __import__("functools").reduce(lambda a, b: a ^ b, v))):
        f.case(["redux.sync.%s %%d, %%a0, 0xffffffff;" % op], [("u32", 32, data)], "u32", 32, [fn(halves[t // 32]) & 0xffffffff for t in range(n)])
    # Lanes apart: odd ones take another way, each way with a mask of its own.
    masks = [0x55555555 if t % 2 == 0 else 0xaaaaaaaa for t in range(n)]
    apart = ["and.b32 %t, %t, 1; setp.eq.u32 %q, %t, 0; @%q bra EVEN;",
             "shfl.sync.bfly.b32 %d, %a0, 2, 31, 0xaaaaaaaa; add.u32 %d, %d, 1; bra JOIN;",
             "EVEN: shfl.sync.bfly.b32 %d, %a0, 4, 31, 0x55555555;", "JOIN: mov.u32 %t, %tid.x;"]
    f.case(apart, [("u32", 32, data)], "u32", 32, [data[t ^ 4] if t % 2 == 0 else (data[t ^ 2] + 1) & 0xffffffff for t in range(n)])
    f.case(["redux.sync.add.u32 %d, %a0, %a1;"], [("u32", 32, data), ("u32", 32, masks)], "u32", 32,
           [sum(data[k] for k in range(t & ~31, (t & ~31) + 32) if k % 2 == t % 2) & 0xffffffff for t in range(n)])
    f.case(["and.b32 %t, %t, 3; setp.eq.u32 %q, %t, 0; mov.u32 %d, 0; @%q activemask.b32 %d; mov.u32 %t, %tid.x;"], [("u32", 32, data)], "u32", 32,
           [0x11111111 if t % 4 == 0 else 0 for t in range(n)])
    f.case(["elect.sync %d|%q, 0xffffffff; selp.u32 %d, 1, 0, %q;"], [("u32", 32, data)], "u32", 32, [1 if t % 32 == 0 else 0 for t in range(n)])
    # Barriers.
    cond = [1 if random.random() < .5 else 0 for _ in range(n)]
    f.case(["setp.ne.u32 %q, %a0, 0; barrier.red.popc.u32 %d, 0, %q;"], [("u32", 32, cond)], "u32", 32, [sum(cond)] * n)
    for mode, result in (("and", 0), ("or", 1)):
        f.case(["setp.ne.u32 %%q, %%a0, 0; bar.red.%s.pred %%q1, 1, %%q; selp.u32 %%d, 1, 0, %%q1;" % mode], [("u32", 32, cond)], "u32", 32, [result] * n)
    shared = [".shared .align 4 .b32 box[64]; .reg .b32 %s, %o1;"]
    turn = "mov.u32 %s, box; shl.b32 %o1, %t, 2; add.u32 %s, %s, %o1; st.shared.u32 [%s], %a0;"
    f.case([turn, "bar.sync 0; xor.b32 %o1, %t, 63; shl.b32 %o1, %o1, 2; mov.u32 %s, box; add.u32 %s, %s, %o1; ld.shared.u32 %d, [%s];"],
           [("u32", 32, data)], "u32", 32, data[::-1], declare=shared)
    # The first warp waits for all 64, the second only says that it has been there.
    f.case([turn, "setp.ge.u32 %q, %t, 32; @%q bar.arrive 3, 64; @!%q bar.sync 3, 64; xor.b32 %o1, %t, 63; shl.b32 %o1, %o1, 2; mov.u32 %s, box;"
            " add.u32 %s, %s, %o1; mov.u32 %d, 0; @!%q ld.shared.u32 %d, [%s];"], [("u32", 32, data)], "u32", 32, data[::-1][:32] + [0] * 32, declare=shared)
    # Each warp has a barrier of its own.
    f.case([turn, "shr.u32 %o1, %t, 5; add.u32 %o1, %o1, 4; bar.sync %o1, 32; xor.b32 %o1, %t, 31; shl.b32 %o1, %o1, 2; mov.u32 %s, box;"
            " add.u32 %s, %s, %o1; ld.shared.u32 %d, [%s];"], [("u32", 32, data)], "u32", 32, data[31::-1] + data[:31:-1], declare=shared)
    # A loop of barriers: an inclusive prefix sum.
    scan = ["mov.u32 %d, %a0; mov.u32 %k, 1;", "STEP: setp.lt.u32 %q, %t, %k; sub.u32 %o1, %t, %k; shl.b32 %o1, %o1, 2; mov.u32 %s, box;"
            " add.u32 %s, %s, %o1; mov.u32 %v, 0; @!%q ld.shared.u32 %v, [%s]; add.u32 %d, %d, %v; bar.sync 0;",
            "mov.u32 %s, box; shl.b32 %o1, %t, 2; add.u32 %s, %s, %o1; st.shared.u32 [%s], %d; shl.b32 %k, %k, 1; bar.sync 0;"
            " setp.lt.u32 %q, %k, 64; @%q bra STEP;"]
    sums = [sum(data[:t + 1]) & 0xffffffff for t in range(n)]
    f.case([turn, "bar.sync 0;"] + scan, [("u32", 32, data)], "u32", 32, sums, declare=shared + [".reg .b32 %k, %v;"])
    # The same under many orders of threads.
    again = [line for line in f.text if line.startswith("//!")]
    cases, current = [], []
    for line in again:
        if line.startswith("//! run ") and current:
            cases.append(current)
            current = []
        current.append(line)
    cases.append(current)
    for seed in range(1, 4):
        for lines in cases:
            f.text.extend([lines[0] + " seed=%d" % seed] + lines[1:])
    f.write()


def matrices():
    """mma against the element maps of the manual; one warp, small whole numbers, which every type holds exactly."""
    f = File("matrices")
    lanes = range(32)
    number = lambda i, j: (i * 7 + j * 3) % 9 - 4

    def pack(fmt, values):
        if fmt == "s8":
            return sum((v & 255) << 8 * i for i, v in enumerate(values))
        if fmt in ("f16", "bf16"):
            return sum(x.encode(x.F16 if fmt == "f16" else x.BF16, x.Fraction(v)) << 16 * i for i, v in enumerate(values))
        return values[0] & 0xffffffff if fmt == "s32" else x.encode(x.F32, x.Fraction(values[0]))

    def product(shape, k, kinds, a_at, b_at, a_regs, b_regs, per):
        text = "mma.sync.aligned.%s.row.col.%s.%s.%s.%s" % ((shape,) + kinds)
        a = [[number(i, j) for j in range(k)] for i in range(16)]
        b = [[number(j + 1, i) for j in range(8)] for i in range(k)]
        c = [[number(i, j + 2) for j in range(8)] for i in range(16)]
        d = [[c[i][j] + sum(a[i][l] * b[l][j] for l in range(k)) for j in range(8)] for i in range(16)]
        regs = []
        for r in range(a_regs):
            regs.append([pack(kinds[1], [a[row][col] for row, col in (a_at(t >> 2, t & 3, r * per + i) for i in range(per))]) for t in lanes])
        for r in range(b_regs):
            regs.append([pack(kinds[2], [b[row][col] for row, col in (b_at(t >> 2, t & 3, r * per + i) for i in range(per))]) for t in lanes])
        c_at = lambda g, q, i: (g + (8 if i >= 2 else 0), q * 2 + (i & 1))
        out_per = 2 if kinds[0] == "f16" else 1
        for r in range(4 // out_per):
            regs.append([pack(kinds[3], [c[c_at(t >> 2, t & 3, r * out_per + i)[0]][c_at(t >> 2, t & 3, r * out_per + i)[1]] for i in range(out_per)])
                         for t in lanes])
        names = ["%%a%d" % i for i in range(len(regs))]
        groups = [names[:a_regs], names[a_regs:a_regs + b_regs], names[a_regs + b_regs:]]
        for r in range(4 // out_per):
            outs = ["%%o%d" % i for i in range(4 // out_per)]
            want = [pack(kinds[0], [d[c_at(t >> 2, t & 3, r * out_per + i)[0]][c_at(t >> 2, t & 3, r * out_per + i)[1]] for i in range(out_per)])
                    for t in lanes]
            f.case(["%s {%s}, {%s}, {%s}, {%s}; mov.b32 %%d, %%o%d;" % ((text, ", ".join(outs)) + tuple(", ".join(g) for g in groups) + (r,))],
                   [("u32", 32, v) for v in regs], "u32", 32, want, declare=[".reg .b32 %s;" % ", ".join(outs)])

    a16 = lambda g, q, i: (g + (8 if i & 2 else 0), q * 2 + (i & 1) + (8 if i >= 4 else 0))
    b16 = lambda g, q, i: (q * 2 + (i & 1) + (8 if i >= 2 else 0), g)
    for kinds in (("f32", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("f32", "bf16", "bf16", "f32")):
        product("m16n8k16", 16, kinds, a16, b16, 4, 2, 2)
    product("m16n8k8", 8, ("f32", "f16", "f16", "f32"), a16, b16, 2, 1, 2)
    product("m16n8k8", 8, ("f32", "tf32", "tf32", "f32"), lambda g, q, i: (g + (8 if i & 1 else 0), q + (4 if i >= 2 else 0)),
            lambda g, q, i: (q + 4 * i, g), 4, 2, 1)
    product("m16n8k4", 4, ("f32", "tf32", "tf32", "f32"), lambda g, q, i: (g + 8 * i, q), lambda g, q, i: (q, g), 2, 1, 1)
    product("m16n8k16", 16, ("s32", "s8", "s8", "s32"), lambda g, q, i: (g + (8 if i >= 4 else 0), q * 4 + (i & 3)), lambda g, q, i: (q * 4 + i, g), 2, 1, 4)
    product("m16n8k32", 32, ("s32", "s8", "s8", "s32"),
            lambda g, q, i: (g + (8 if i & 4 else 0), q * 4 + (i & 3) + (16 if i >= 8 else 0)),
            lambda g, q, i: (q * 4 + (i & 3) + (16 if i >= 4 else 0), g), 4, 2, 4)
    # ldmatrix: rows in reverse order, so that the addresses count; the second matrix lies 128 bytes behind.
    data = [random.getrandbits(32) for _ in range(64)]
    at = lambda m, row, col: data[m * 32 + (7 - row) * 4 + col // 2] >> 16 * (col & 1) & 0xffff
    fill = [".shared .align 16 .b32 tile[64]; .reg .b32 %s, %u, %m0, %m1;"]
    put = "mov.u32 %s, tile; mad.lo.u32 %u, %t, 4, %s; st.shared.u32 [%u], %a0; st.shared.u32 [%u+128], %a1; bar.warp.sync 0xffffffff;" \
          " and.b32 %u, %t, 7; sub.u32 %u, 7, %u; mad.lo.u32 %s, %u, 16, %s; and.b32 %u, %t, 8; mad.lo.u32 %s, %u, 16, %s;"
    ins = [("u32", 32, data[:32]), ("u32", 32, data[32:])]
    for m in (0, 1):
        f.case([put, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%%m0, %%m1}, [%%s]; mov.b32 %%d, %%m%d;" % m], ins, "u32", 32,
               [at(m, t >> 2, 2 * (t & 3)) | at(m, t >> 2, 2 * (t & 3) + 1) << 16 for t in lanes], declare=fill)
        f.case([put, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%%m0, %%m1}, [%%s]; mov.b32 %%d, %%m%d;" % m], ins, "u32", 32,
               [at(m, 2 * (t & 3), t >> 2) | at(m, 2 * (t & 3) + 1, t >> 2) << 16 for t in lanes], declare=fill)
    f.case([put, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%s], {%a0, %a1}; bar.warp.sync 0xffffffff; mov.u32 %s, tile; mad.lo.u32 %u, %t, 4, %s;"
            " ld.shared.u32 %d, [%u];"], ins, "u32", 32, [data[(7 - t // 4) * 4 + t % 4] for t in lanes], declare=fill)
    f.case(["mov.u32 %s, tile; mad.lo.u32 %u, %t, 4, %s; st.shared.u32 [%u], 7; ld.param.u64 %p, [p0]; mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o;"
            " cp.async.ca.shared.global [%u], [%p], 4; cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %d, [%u];"], [ins[0]], "u32", 32,
           data[:32], declare=fill)
    f.case(["mov.u32 %s, tile; mad.lo.u32 %u, %t, 4, %s; st.shared.u32 [%u], 7; ld.param.u64 %p, [p0]; mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o;"
            " cp.async.ca.shared.global [%u], [%p], 4, 2; cp.async.wait_all; ld.shared.u32 %d, [%u];"], [ins[0]], "u32", 32,
           [v & 0xffff for v in data[:32]], declare=fill)
    f.write()


float_arithmetic()
conversions()
comparisons()
integers()
approximations()
warps()
matrices()
