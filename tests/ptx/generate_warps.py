"""What a warp does together: exchanges and matrices."""
import random

import exact as x
from cases import File


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
