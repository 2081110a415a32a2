#!/usr/bin/env python3
"""Every form of every instruction, as the PTX manual lists them: is taken, or refused by name. And every form with a
modifier or an operand that does not belong to it: must be refused. So nothing that an instruction says is passed over.

The table is forms_table.py.
    tests/ptx/forms.py [--all] [--compile]   every form with strange modifiers; the C compiler reads what is written
"""
import itertools
import os
import subprocess
import sys
import tempfile

from forms_table import FORMS, NOT_DONE, ORD, SEM, STO

BUILD = os.environ.get("BUILD", "build")

# Hints and the like may stand on any access to memory.
HINTS = {"L1::no_allocate", "L1::evict_last", "L1::evict_first", "L2::64B", "L2::128B", "L2::256B", "ca", "cg", "cs",
         "lu", "cv", "wb", "wt", "nc", "L2::cache_hint", "weak", "relaxed", "acquire", "release", "acq_rel",
         "volatile", "cta", "gpu", "sys", "cluster", "shared::cta", "shared::cluster", "global", "shared", "local",
         "const", "param", "mmio", "unified"}
HINTED = {"ld", "ldu", "st", "atom", "red", "cp", "prefetch", "fence", "membar", "mbarrier", "wmma", "ldmatrix",
          "stmatrix", "cvta", "isspacep"}
STRANGE = """v2 v4 noftz oob abs NaN sat cc ftz relu satfinite wide hi lo approx full rs async mmio trans uni xorsign
    rn rz rm rp rni rna multicast::cluster sp::ordered_metadata unified nosuch clamp wrap and popc shiftamt pred aligned
    sync row col read parity noinc s32 u32 f32 f64 f16 bf16 b32 b64 b16 u8 s64 x4 to global shared""".split()


def choices(text, at, closing):
    """All expansions of text[at:] up to the closing mark, and where it stands."""
    sequences = [""]
    while at < len(text) and text[at] not in closing:
        if text[at] in "{<":
            inner, end = alternatives(text, at + 1, "}" if text[at] == "{" else ">")
            inner = [""] + inner if text[at] == "{" else inner
            sequences = [s + i for s in sequences for i in inner]
            at = end + 1
        else:
            sequences = [s + text[at] for s in sequences]
            at += 1
    return sequences, at


def alternatives(text, at, closing):
    every = []
    while True:
        some, at = choices(text, at, "|" + closing)
        every += some
        if text[at] == closing:
            return every, at
        at += 1


def read_table():
    """(line number, opcode with modifiers, operands)"""
    for number, line in enumerate(FORMS.strip().splitlines()):
        name, _, operands = line.replace("@ORD", ORD).replace("@STO", STO).replace("@SEM", SEM).partition(" ")
        for form, shape in itertools.product(choices(name, 0, "")[0], choices(operands, 0, "")[0]):
            yield number, form, shape


REGISTERS = {"h": "%h", "r": "%r", "d": "%d", "f": "%f", "F": "%g", "p": "%p", "q": "%q"}


def operand(kind, number):
    if kind == "A":
        return "[%d9]"
    if kind == "S":
        return "[%r9]"
    if kind[0] == "i":
        return kind[1:] or "1"
    if kind[0] == "(":
        return "{" + ", ".join("%s%d" % (REGISTERS[kind[2]], 10 + i) for i in range(int(kind[1]))) + "}"
    if "|" in kind:
        return "|".join("%s%d" % (REGISTERS[k], number + i) for i, k in enumerate(kind.split("|")))
    return "%s%d" % (REGISTERS[kind], number)


def statement(form, operands):
    kinds = [k for k in operands.split(",") if k]
    return form + " " + ", ".join(operand(kind, i) for i, kind in enumerate(kinds)) + ";"


HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
BODY = (".visible .entry k%d() {\n.reg .b16 %%h<30>; .reg .b32 %%r<30>; .reg .b64 %%d<30>; .reg .f32 %%f<30>; "
        ".reg .f64 %%g<30>; .reg .pred %%p<30>; .reg .b128 %%q<9>;\n%s\nret;\n}\n")
PER_FILE = 700


def write_module(path, statements):
    with open(path, "w") as file:
        file.write(HEAD + "".join(BODY % (i, s) for i, s in enumerate(statements)))


def compiler_errors(statements):
    """What the C compiler says of the C of all, PER_FILE at a time."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(statements), PER_FILE):
            write_module(folder + "/forms.ptx", statements[start:start + PER_FILE])
            with open(folder + "/forms.c", "w") as file:
                subprocess.run([BUILD + "/device/translate", "--source", folder + "/forms.ptx"], stdout=file, check=True)
            done = subprocess.run(["cc", "-std=gnu17", "-fsyntax-only", "-w", "-Werror=implicit-function-declaration",
                                   folder + "/forms.c"], stderr=subprocess.PIPE, text=True)
            errors += [line for line in done.stderr.splitlines() if "error" in line]
    return errors


def translate(statements):
    """Why each is refused; "" where it is taken."""
    reasons = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(statements), PER_FILE):
            part, path = statements[start:start + PER_FILE], folder + "/forms.ptx"
            write_module(path, part)
            done = subprocess.run([BUILD + "/device/translate", path], stdout=subprocess.PIPE, text=True)
            rows = [line.split("\t") for line in done.stdout.splitlines()]
            if done.returncode or len(rows) != len(part) + 1:
                raise SystemExit("translate ended with %d: %s" % (done.returncode, rows[-1:]))
            reasons += [row[4] for row in rows[1:]]
    return reasons


def is_not_done(form):
    parts = form.split(".")
    return any(form.startswith(n) or set(n.split(".")) <= set(parts) for n in NOT_DONE)


def check(name, wrong):
    print("%s %s" % ("not ok" if wrong else "ok", name))
    for line in wrong[:int(os.environ.get("SHOW", "20"))]:
        print("    " + line, file=sys.stderr)
    return bool(wrong)


def strange_forms(table, legal, every):
    """A modifier more, where that is no form of the table: at the end and behind the opcode in turn."""
    seen, last = set(), None
    for i, (number, form, operands) in enumerate(table):
        is_first, is_last = number != last, i + 1 == len(table) or table[i + 1][0] != number
        last = number
        if not (every or is_first or is_last) or is_not_done(form):
            continue
        opcode, *modifiers = form.split(".")
        for k, word in enumerate(STRANGE):
            if opcode in HINTED and word in HINTS:
                continue
            changed = modifiers + [word] if k % 2 else [word] + modifiers
            key = (opcode, tuple(sorted(changed)))
            if key in legal or (key, operands) in seen:
                continue
            seen.add((key, operands))
            yield statement(".".join([opcode] + changed), operands)


def main():
    every, compiles = "--all" in sys.argv, "--compile" in sys.argv
    if not os.access(BUILD + "/device/translate", os.X_OK):
        print("skip forms: %s/device/translate is not built" % BUILD)
        return 0
    table = list(dict.fromkeys(read_table()))
    legal = {(f.split(".")[0], tuple(sorted(f.split(".")[1:]))) for _, f, _ in table}
    shapes = {(f, len([k for k in o.split(",") if k])) for _, f, o in table}
    failed = 0
    taken, missing, surprising = 0, [], []
    statements = [statement(f, o) for _, f, o in table]
    for (_, form, _), why in zip(table, translate(statements)):
        taken += not why
        if is_not_done(form) and not why:
            surprising.append("%s is taken, but listed as not done" % form)
        if not is_not_done(form) and why:
            missing.append("%s: %s" % (form, why))
    failed += check("forms: %d forms of the manual are taken" % taken, missing)
    failed += check("forms: what is not done is refused", surprising)
    if compiles:
        failed += check("forms: the C compiler takes what is written", compiler_errors(statements))
    strange = list(strange_forms(table, legal, every))
    failed += check("forms: %d with a modifier that does not belong there are refused" % len(strange),
                    [s + " is taken" for s, why in zip(strange, translate(strange)) if not why])
    crowded = [statement(f, o + ",r" if o else "r") for _, f, o in table
               if (f, len([k for k in o.split(",") if k]) + 1) not in shapes and not is_not_done(f)]
    failed += check("forms: %d with an operand too many are refused" % len(crowded),
                    [s + " is taken" for s, why in zip(crowded, translate(crowded)) if not why])
    short = [statement(f, o.rpartition(",")[0]) for _, f, o in table
             if o and (f, len(o.split(",")) - 1) not in shapes and not is_not_done(f)]
    failed += check("forms: %d with an operand too few are refused" % len(short),
                    [s + " is taken" for s, why in zip(short, translate(short)) if not why])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
