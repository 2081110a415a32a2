"""Conversions and comparisons."""
import random

import exact as x
from cases import File, NAMES, floats, pairs, saturated, word_type


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
