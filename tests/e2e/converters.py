#!/usr/bin/env python3
"""The converters of scripts/ with logs and tables that are damaged: status 0 and a problem that the reader takes, or
status 2 and one line that names the file, never a traceback. Prints `ok NAME` or `not ok NAME: why` per check.
"""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLICY = os.path.join(ROOT, os.environ.get("BUILD", "build"), "reprise-policy")
DTR, G10 = (os.path.join(ROOT, "scripts", name) for name in ("dtr_to_problem.py", "g10_to_problem.py"))
ROUNDS = int(os.environ.get("CONVERTER_ROUNDS", "60"))
WORDS = ["-1", "", "x", "99999999999999999999999", "1e400", "nan", "null", "[]", "{}", "3.5", "a b", "#", "\u00e9", "\t"]

LOG = [{"INSTRUCTION": "RELEASE", "NAME": "before"}, {"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"},
       {"INSTRUCTION": "CONSTANT", "NAME": "w"}, {"INSTRUCTION": "MEMORY", "NAME": "w", "MEMORY": "64"}]
for layer in range(4):
    before = f"x{layer - 1}" if layer else "w"
    LOG += [{"INSTRUCTION": "CALL", "NAME": "conv", "ARGS": [before, "w"], "RESULT": [f"x{layer}", f"v{layer}"],
             "TIME": "1200"},
            {"INSTRUCTION": "MEMORY", "NAME": f"x{layer}", "MEMORY": "100"},
            {"INSTRUCTION": "ALIAS", "NAME": f"x{layer}", "ALIAS": "-1"},
            {"INSTRUCTION": "MEMORY", "NAME": f"v{layer}", "MEMORY": "0"},
            {"INSTRUCTION": "ALIAS", "NAME": f"v{layer}", "ALIAS": "0"},
            {"INSTRUCTION": "COPY", "DST": f"c{layer}", "SRC": f"x{layer}"}]
LOG += [{"INSTRUCTION": "MUTATE", "NAME": "add_", "ARGS": ["x3", "x0"], "MUTATE": [0], "TIME": "30"},
        {"INSTRUCTION": "COPY_FROM", "DST": "c0", "SRC": "x3"}, {"INSTRUCTION": "RELEASE", "NAME": "c1"}]
KERNELS = ("kernel\tname\ttime_us\tworkspace_bytes\tinputs\toutputs\n0\tConv\t68.440\t4558\t2,1\t3,0\n"
           "1\tAdd\t2.816\t0\t3,0\t4\n2\tBack\t9\t7\t4,2,1\t5\n3\tStep\t1\t0\t5,1\t1\n")
TENSORS = "tensor\tglobal\tbytes\n0\t0\t3853\n1\t1\t308\n2\t1\t99\n3\t0\t400\n4\t0\t400\n5\t0\t308\n"


def run(command):
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def complaint(command, name, words=()):
    """None where the converter answered as it should. `words` must be in what it says."""
    done = run(command)
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 2):
        return f"status {done.returncode}: {said.strip()[-200:]}"
    if done.returncode == 2:
        if done.stdout or said.count("\n") != 1 or name not in said:
            return f"no single line that names the file: {said.strip()[-200:]!r}"
        return next((f"{word} is not in {said!r}" for word in words if word not in said), None)
    if words:
        return "taken"
    if said:
        return f"it says {said.strip()[-200:]!r}"
    read = subprocess.run([POLICY, "floor", "-"], input=done.stdout, capture_output=True, timeout=60, check=False)
    refused = read.stderr.decode("utf-8", "replace")
    return None if read.returncode == 0 or refused.count("\n") == 1 else f"the reader: {read.returncode} {refused!r}"


def damage(text, draw):
    """Damage of one kind somewhere in a text."""
    lines = text.split("\n")
    k = draw.randrange(len(lines))
    kind = draw.randrange(6)
    if kind == 0:
        return text[:draw.randrange(len(text))]
    if kind == 1:
        del lines[k]
    elif kind == 2:
        lines.insert(draw.randrange(len(lines)), lines[k])
    elif kind == 3:
        lines[k] = lines[k].replace(draw.choice("0123456789xvcw"), draw.choice(WORDS), 1)
    elif kind == 4:
        fields = lines[k].split("\t") if "\t" in lines[k] else lines[k].split(",")
        fields[draw.randrange(len(fields))] = draw.choice(WORDS)
        lines[k] = ("\t" if "\t" in lines[k] else ",").join(fields)
    else:
        at = draw.randrange(len(text))
        return text[:at] + chr(draw.randrange(256)) + text[at + 1:]
    return "\n".join(lines)


def damage_row(rows, draw):
    """A value of another type, or none, in one row of a log."""
    rows = [dict(row) for row in rows]
    row = rows[draw.randrange(2, len(rows))]
    field = draw.choice(list(row))
    if draw.randrange(3):
        row[field] = draw.choice([None, -7, 10 ** 30, 1.5, [], {}, ["x0"], "nobody", True, "", [99], [-1], "ALIAS"])
    else:
        del row[field]
    return rows


def text_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def make_cases(folder):
    """Commands, with the name that a refusal must hold."""
    draw = random.Random(7)
    for k in range(ROUNDS):
        log = os.path.join(folder, f"log{k}")
        text = damage(text_of(LOG), draw) if k % 2 else text_of(damage_row(LOG, draw))
        content = text.encode("utf-8" if k % 5 else "latin-1", "replace")
        if k % 7 == 0:
            log, content = log + ".gz", gzip.compress(content)
            content = content[:draw.randrange(8, len(content) + 1)]
        with open(log, "wb") as file:
            file.write(content)
        yield "dtr", [sys.executable, DTR, log], os.path.basename(log)
        kernels = os.path.join(folder, f"table{k}.kernels.tsv")
        with open(kernels, "wb") as file:
            file.write((damage(KERNELS, draw) if k % 3 else KERNELS).encode("utf-8" if k % 5 else "latin-1", "replace"))
        with open(kernels.replace(".kernels.", ".tensors."), "wb") as file:
            file.write((damage(TENSORS, draw) if k % 3 != 1 else TENSORS).encode("latin-1", "replace"))
        yield "g10", [sys.executable, G10, kernels] + (["16"] if k % 2 else []), f"table{k}."


def check_damaged(folder):
    cases = list(make_cases(folder))
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda case: complaint(case[1], case[2]), cases))
    for kind in ("dtr", "g10"):
        wrong = [f"{case[1][2]}: {why}" for case, why in zip(cases, found) if case[0] == kind and why]
        say(f"{kind}: {ROUNDS} damaged inputs", wrong[0] if wrong else None)


def check_places(folder):
    """What is said names the line."""
    log, kernels = os.path.join(folder, "log"), os.path.join(folder, "t.kernels.tsv")
    for what, row, word in (("an unknown tensor", {"INSTRUCTION": "CALL", "NAME": "f", "ARGS": ["q"], "TIME": "1"}, "'q'"),
                            ("a duration below zero", {"INSTRUCTION": "CALL", "NAME": "f", "ARGS": [], "TIME": "-1"},
                             "TIME"),
                            ("an alias of no argument", {"INSTRUCTION": "ALIAS", "NAME": "q", "ALIAS": "7"}, "ARGS"),
                            ("an unknown instruction", {"INSTRUCTION": "FROB"}, "FROB"), ("no object", [], "")):
        with open(log, "w", encoding="utf-8") as file:
            file.write(text_of(LOG + [row]))
        say(f"dtr: {what}", complaint([sys.executable, DTR, log], "log", [f"log:{len(LOG) + 1}: ", word]))
    with open(log, "w", encoding="utf-8") as file:
        file.write(text_of(LOG[2:]))
    say("dtr: no start", complaint([sys.executable, DTR, log], "log", ["START"]))
    say("dtr: no file", complaint([sys.executable, DTR, log + "x"], "logx", ["No such file"]))
    with open(kernels.replace(".kernels.", ".tensors."), "w", encoding="utf-8") as file:
        file.write(TENSORS)
    for what, line, word in (("an unknown tensor", "4\tF\t1\t0\t77\t4", "77"), ("a field is missing", "4\tF\t1\t0\t3", "fields"),
                             ("no duration", "4\tF\tnan\t0\t3\t4", "nan")):
        with open(kernels, "w", encoding="utf-8") as file:
            file.write(KERNELS + line + "\n")
        say(f"g10: {what}", complaint([sys.executable, G10, kernels], "t.kernels.tsv", ["t.kernels.tsv:6: ", word]))
    with open(kernels, "w", encoding="utf-8") as file:
        file.write(KERNELS)
    say("g10: no bandwidth", complaint([sys.executable, G10, kernels, "fast"], "fast", ["bandwidth"]))


def check_whole(folder):
    """Undamaged ones are taken, and what cannot be written is told."""
    log = os.path.join(folder, "log")
    with open(log, "w", encoding="utf-8") as file:
        file.write(text_of(LOG))
    done = run([sys.executable, DTR, log])
    say("dtr: a whole log", None if done.returncode == 0 and done.stdout.endswith(b"end\n") else f"{done.stderr!r}")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, DTR, log], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    is_right = done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"No space" in done.stderr
    say("dtr: a full disk", None if is_right else f"{done.returncode} {done.stderr!r}")


def say(name, wrong):
    print(f"not ok {name}: {wrong}" if wrong else f"ok {name}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_whole(folder)
        check_places(folder)
        check_damaged(folder)


if __name__ == "__main__":
    main()
