"""How generated test files are written, and the values that they are made of."""
import os
import random

import exact as x

HERE = os.path.dirname(os.path.abspath(__file__))

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
