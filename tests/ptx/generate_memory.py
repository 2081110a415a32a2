"""Atomics in all types, copies that are called asynchronous, and conversions that came with them."""
import random

import exact as x
from cases import File, NAMES, blocks, floats, pairs, word_type

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
EDGES = [0, 1, 2, 3, 0x7f, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff]


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def whole_results(bits):
    """What each operation leaves, for (old, operand)."""
    mask = (1 << bits) - 1
    return {
        "add.u": lambda a, b: (a + b) & mask, "min.u": min, "max.u": max,
        "min.s": lambda a, b: a if signed(a, bits) < signed(b, bits) else b,
        "max.s": lambda a, b: a if signed(a, bits) > signed(b, bits) else b,
        "and.b": lambda a, b: a & b, "or.b": lambda a, b: a | b, "xor.b": lambda a, b: a ^ b, "exch.b": lambda a, b: b,
        "inc.u": lambda a, b: 0 if a >= b else a + 1, "dec.u": lambda a, b: b if a == 0 or a > b else a - 1,
    }


def place(space, bytes_, index):
    """%x: the thread's own element, in shared memory or in the buffer of results."""
    if space == "shared":
        return "mov.u32 %%y, room; mad.lo.u32 %%y, %%t, %d, %%y; cvt.u64.u32 %%x, %%y;" % bytes_
    return "ld.param.u64 %%x, [p%d]; mul.wide.u32 %%o, %%t, %d; add.u64 %%x, %%x, %%o;" % (index, bytes_)


def memory_word(space):
    return "shared" if space == "shared" else "global"


def one_atomic(f, space, name, kind, bits, old, operand, new, third=None):
    """Twice: what the instruction gives back, and what it leaves."""
    ins = [(kind, bits, old), (kind, bits, operand)] + ([(kind, bits, third)] if third else [])
    declare = [".reg .b64 %x; .reg .b32 %y;"] + ([".shared .align 16 .b8 room[16384];"] if space == "shared" else [])
    where = memory_word(space)
    base = place(space, bits // 8, len(ins)) + " st.%s.b%d [%%x], %%a0;" % (where, bits)
    more = ", %a2" if third else ""
    dot = "" if space == "generic" else "." + where
    atom = "atom%s.%s %%d, [%%x], %%a1%s;" % (dot, name, more)
    f.case([base, atom], ins, kind, bits, old, declare=declare)
    f.case([base, atom, "ld.%s.b%d %%d, [%%x];" % (where, bits)], ins, kind, bits, new, declare=declare)
    if not third and "exch" not in name:
        f.case([base, "red%s.%s [%%x], %%a1;" % (dot, name), "ld.%s.b%d %%d, [%%x];" % (where, bits)], ins, kind, bits,
               new, declare=declare)


def whole_atomics(f, space):
    for bits in (32, 64):
        edges = EDGES if bits == 32 else EDGES + [1 << 63, (1 << 63) - 1, M64]
        both = [(a, b) for a in edges for b in edges]
        old, operand = [a for a, _ in both], [b for _, b in both]
        for name, fn in whole_results(bits).items():
            if bits == 64 and name[:3] in ("inc", "dec"):
                continue
            one_atomic(f, space, name + str(bits), "u%d" % bits, bits, old, operand, [fn(a, b) for a, b in both])
    one_atomic(f, space, "add.s32", "u32", 32, EDGES, EDGES[::-1], [(a + b) & M32 for a, b in zip(EDGES, EDGES[::-1])])
    for bits in (16, 32, 64):
        mask = (1 << bits) - 1
        old = [v & mask for v in EDGES]
        compared = [v if i % 2 else v ^ 1 for i, v in enumerate(old)]
        value = [(v * 3 + 5) & mask for v in old]
        kind = "u%d" % bits if bits > 16 else "u16"
        one_atomic(f, space, "cas.b%d" % bits, kind, bits, old, compared,
                   [v if c == o else o for o, c, v in zip(old, compared, value)], value)


def float_sum(fmt, space, a, b):
    """Global memory flushes f32."""
    flushes = fmt == x.F32 and space != "shared"
    if flushes:
        a, b = x.flush(fmt, a), x.flush(fmt, b)
    s = x.add(fmt, a, b)
    return x.flush(fmt, s) if flushes and s != x.NAN else s


def float_atomics(f, space):
    for fmt in (x.F32, x.F64, x.F16, x.BF16):
        name, bits = NAMES[fmt]
        both = pairs([v for v in floats(fmt, 2) if not x.is_nan(fmt, v)], 300)
        word = "add.noftz." + name if bits == 16 else "add." + name
        one_atomic(f, space, word, word_type(fmt), bits, [a for a, _ in both], [b for _, b in both],
                   [float_sum(fmt, space, a, b) for a, b in both])


def vector_atomics(f):
    """Element k of what is left, for vectors of each type; the elements of a thread are its own word, moved about."""
    for fmt, pair, counts in ((x.F32, False, (2, 4)), (x.F16, False, (2, 4, 8)), (x.BF16, False, (2, 8)),
                              (x.F16, True, (2, 4)), (x.BF16, True, (2, 4))):
        name, bits = NAMES[fmt]
        usual = [v for v in floats(fmt, 3) if not x.is_nan(fmt, v) and not x.is_inf(fmt, v) and
                 (fmt != x.F32 or x.flush(fmt, v) == v)]
        for operation in ("add", "min", "max"):
            if fmt == x.F32 and operation != "add":
                continue
            for count in counts:
                vector_case(f, fmt, name, bits, pair, operation, count, usual)


def vector_case(f, fmt, name, bits, pair, operation, count, usual):
    fn = {"add": lambda a, b: float_sum(fmt, "global", a, b), "min": lambda a, b: x.minimum(fmt, a, b),
          "max": lambda a, b: x.minimum(fmt, a, b, largest=True)}[operation]
    width = 32 if pair or fmt == x.F32 else 16
    random_word = lambda: random.choice(usual) | (random.choice(usual) << 16 if pair else 0)
    n, element = 24, count - 1
    old, operand = [random_word() for _ in range(n)], [random_word() for _ in range(n)]
    halves = lambda v: [v & 0xffff, v >> 16] if pair else [v]
    new = [[fn(a, b) for a, b in zip(halves(o), halves(p))] for o, p in zip(old, operand)]
    new = [r[0] | (r[1] << 16 if pair else 0) for r in new]
    reg = "b%d" % width
    # all elements but the last start and are added as zeros: an operation that mixes them up shows
    lists = ["{" + ", ".join("%%%s%d" % (c, i) for i in range(count)) + "}" for c in "ev"]
    zeros = " ".join("mov.%s %%v%d, 0;" % (reg, i) for i in range(count - 1))
    size = width // 8
    declare = [".reg .b64 %%x; .reg .b32 %%y; .reg .%s %%e<8>; .reg .%s %%v<8>; .shared .align 16 .b8 unused[16];" % (reg, reg),
               ".global .align 16 .b8 room%d[%d];" % (f.count, n * 32)]
    f.text.append(declare.pop())
    base = ["mov.u64 %%x, room%d; mul.wide.u32 %%o, %%t, 32; add.u64 %%x, %%x, %%o;" % f.count, zeros,
            " ".join("st.global.%s [%%x+%d], 0;" % ("b%d" % width, i * size) for i in range(count - 1)),
            "st.global.%s [%%x+%d], %%a0; mov.%s %%v%d, %%a1;" % (reg, element * size, reg, element)]
    word = "%s%s.v%d.%s" % (operation, "" if fmt == x.F32 else ".noftz", count, name + ("x2" if pair else ""))
    kind = word_type(fmt) if not pair else "u32"
    ins = [(kind, width, old), (kind, width, operand)]
    f.case(base + ["atom.global.%s %s, [%%x], %s; mov.%s %%d, %%e%d;" % (word, lists[0], lists[1], reg, element)], ins,
           kind, width, old, declare=declare)
    room = f.count
    f.text.append(".global .align 16 .b8 room%d[%d];" % (room, n * 32))
    base[0] = "mov.u64 %%x, room%d; mul.wide.u32 %%o, %%t, 32; add.u64 %%x, %%x, %%o;" % room
    f.case(base + ["red.global.%s [%%x], %s; ld.global.%s %%d, [%%x+%d];" % (word, lists[1], reg, element * size)], ins,
           kind, width, new, declare=declare)


def atomics():
    f = File("atomics")
    for space in ("shared", "global", "generic"):
        whole_atomics(f, space)
        float_atomics(f, space)
    vector_atomics(f)
    f.write()


def copies():
    """Bulk copies with their barriers, copies with what is to be ignored, and tiles turned over."""
    f = File("copies")
    data = [random.getrandbits(32) for _ in range(32)]
    declare = [".shared .align 128 .b8 room[256]; .shared .align 8 .b64 gate; .reg .b32 %s<4>; .reg .b64 %x<4>; .reg .pred %z<2>;"]
    mine = "mov.u32 %s0, room; mad.lo.u32 %s1, %t, 4, %s0;"
    wait = "$wait%d: mbarrier.try_wait.parity.shared.b64 %%z0, [%%s2], 0; @!%%z0 bra $wait%d;"
    for form in ("shared::cluster.global", "shared::cta.global"):
        f.case(["mov.u32 %s0, room; mov.u32 %s2, gate; setp.eq.u32 %z1, %t, 0; ld.param.u64 %x0, [p0];",
                "@%z1 mbarrier.init.shared.b64 [%s2], 1; bar.sync 0;",
                "@%z1 mbarrier.arrive.expect_tx.shared.b64 %x1, [%s2], 128;",
                "@%%z1 cp.async.bulk.%s.mbarrier::complete_tx::bytes [%%s0], [%%x0], 128, [%%s2];" % form,
                wait % (f.count, f.count), "xor.b32 %s3, %t, 31; mad.lo.u32 %s1, %s3, 4, %s0; ld.shared.u32 %d, [%s1];"],
               [("u32", 32, data)], "u32", 32, data[::-1], declare=declare)
    f.case([mine, "not.b32 %s3, %a0; st.shared.u32 [%s1], %s3; fence.proxy.async.shared::cta; bar.sync 0;",
            "setp.eq.u32 %z1, %t, 0; ld.param.u64 %x0, [p1];",
            "@%z1 cp.async.bulk.global.shared::cta.bulk_group [%x0], [%s0], 128;",
            "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bar.sync 0;",
            "mad.wide.u32 %x1, %t, 4, %x0; ld.global.u32 %d, [%x1];"],
           [("u32", 32, data)], "u32", 32, [v ^ M32 for v in data], declare=declare)
    for ignored in (0, 1):
        f.case([mine, "st.shared.u32 [%s1], 7; ld.param.u64 %x0, [p0]; mul.wide.u32 %o, %t, 4; add.u64 %x0, %x0, %o;",
                "setp.eq.u32 %%z0, %%t, %%t; setp.%s.u32 %%z0, %%t, 99;" % ("ne" if ignored else "eq"),
                "cp.async.ca.shared.global [%s1], [%x0], 4, %z0; cp.async.wait_all; ld.shared.u32 %d, [%s1];"],
               [("u32", 32, data)], "u32", 32, [0] * 32 if ignored else data, declare=declare)
    half = lambda row, column: data[row * 4 + column // 2] >> (16 * (column & 1)) & 0xffff
    f.case(["movmatrix.sync.aligned.m8n8.trans.b16 %d, %a0;"], [("u32", 32, data)], "u32", 32,
           [half(2 * (t & 3), t >> 2) | half(2 * (t & 3) + 1, t >> 2) << 16 for t in range(32)])
    predicates(f)
    f.write()


def predicates(f):
    """lop3 that also says whether anything is left, joined with another predicate."""
    values = [(random.getrandbits(32), random.getrandbits(32), random.getrandbits(32), i & 1) for i in range(30)]
    values += [(0, M32, 0, 0), (0, M32, 0, 1)]
    for join, fn in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q), ("xor", lambda p, q: p ^ q)):
        for table in (0x80, 0xfe, 0x96, 0x00):
            result = [sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32))
                      for a, b, c, _ in values]
            ins = [("u32", 32, [v[k] for v in values]) for k in range(4)]
            f.case(["setp.ne.u32 %%q, %%a3, 0; lop3.%s.b32 %%d|%%q1, %%a0, %%a1, %%a2, %d, %%q;" % (join, table),
                    "selp.u32 %d, 1, 0, %q1;"], ins, "u32", 32,
                   [fn(int(r != 0), v[3]) for r, v in zip(result, values)])


def finite(fmt, bits):
    """.satfinite"""
    return bits if bits == x.NAN or not x.is_inf(fmt, bits) else x.inf(fmt, x.sign_of(fmt, bits)) - 1


def clipped(fmt, bits):
    """.relu"""
    return bits if bits == x.NAN or not x.sign_of(fmt, bits) else 0


def narrow_values(fmt, to):
    """Numbers of fmt near those of `to`: halfway, just beside, beyond the range."""
    out = floats(fmt, 20)
    for bits in floats(to, 20):
        if x.is_nan(to, bits) or x.is_inf(to, bits):
            continue
        wide = x.convert(fmt, to, bits)
        half = 1 << (fmt[0] - to[0] - 1)
        out += [max(0, wide + d) for d in (0, 1, -1, half, half + 1, half - 1)]
    return [b & ((1 << x.width(fmt)) - 1) for b in out]


def small_conversions():
    f = File("small_floats")
    for to in (x.F16, x.BF16):
        for fmt in (x.F32, x.F64):
            values = narrow_values(fmt, to)
            for mode in ("rn", "rz", "rm", "rp"):
                exact = [x.convert(to, fmt, v, mode) for v in values]
                for suffix, fn in (("", lambda b: b), (".satfinite", lambda b: finite(to, b)),
                                   (".relu", lambda b: clipped(to, b)),
                                   (".relu.satfinite", lambda b: clipped(to, finite(to, b)))):
                    name = "cvt.%s%s.%s.%s" % (mode, suffix, NAMES[to][0], NAMES[fmt][0])
                    for part, want in zip(blocks(values), blocks([fn(b) for b in exact])):
                        f.case([name + " %d, %a0;"], [(word_type(fmt), NAMES[fmt][1], part)], word_type(to), 16, want)
    tensor_floats(f)
    signs(f)
    f.write()


TF32 = (10, 8)


def tensor_floats(f):
    """tf32 is f32 without its last 13 bits."""
    values = narrow_values(x.F32, TF32)
    for mode in ("rn", "rz"):
        for suffix, fn in (("", lambda b: b), (".satfinite", lambda b: finite(TF32, b)),
                           (".relu", lambda b: clipped(TF32, b))):
            want = [fn(x.convert(TF32, x.F32, v, mode)) for v in values]
            want = [w if w == x.NAN else w << 13 for w in want]
            for part, wanted in zip(blocks(values), blocks(want)):
                f.case(["cvt.%s%s.tf32.f32 %%d, %%a0;" % (mode, suffix)], [("f32", 32, part)], "f32", 32, wanted)


def signs(f):
    """min and max of magnitudes with the product of the signs; NaN as without."""
    for fmt in (x.F16, x.BF16, x.F32):
        name, bits = NAMES[fmt]
        sign = 1 << (bits - 1)
        for operation, largest_ in (("min", False), ("max", True)):
            for nan in ("", ".NaN"):
                both = pairs(floats(fmt, 4), 500)
                want = []
                for a, b in both:
                    r = x.minimum(fmt, a & ~sign, b & ~sign, largest=largest_, keeps_nan=bool(nan))
                    want.append(r if r == x.NAN else (r & ~sign) | ((a ^ b) & sign))
                f.case(["%s%s.xorsign.abs.%s %%d, %%a0, %%a1;" % (operation, nan, name)],
                       [(word_type(fmt), bits, [a for a, _ in both]), (word_type(fmt), bits, [b for _, b in both])],
                       word_type(fmt), bits, want)
