"""Integers and bits."""
import random

from cases import File


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
