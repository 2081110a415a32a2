#!/usr/bin/env python3
"""What the planner gives up first in a transformer, found from a recording alone: the attention matrices, where the
sequence is long enough for them to matter (they grow with its square); not where it is short.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`; with --show, the plans too.
"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
MOST_RECORDINGS = 4  # durations are those of one recorded iteration: a machine that is busy otherwise distorts them
# Where the matrices of all pairs of positions are made: tests/apps/gpt_block.cu.
PLACE = "attend (gpt_block.cu:"
ROW = re.compile(r"^ *([0-9.]+) ([KMGT]?i?B) +([0-9]+)% +([0-9]+) +([0-9]+) +([0-9.]+) +([0-9.]+|-)  (.*)$")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def record(folder, sequence, batch):
    trace = os.path.join(folder, f"gpt{sequence}.trace")
    run("scripts/reprise", "record", "-o", trace, "--device", "cpu", "--", f"{BUILD}/apps/gpt", "--iters", "4", "--layers",
        "6", "--heads", "4", "--dim", "32", "--seq", str(sequence), "--batch", str(batch))
    return trace


def peak_of(trace):
    """From a plan that drops nothing."""
    match = re.search(r"without dropping ([0-9.]+) ([KMG]iB)", run(f"{BUILD}/reprise-trace", "plan", trace, "--cap", "1TiB"))
    return float(match[1]) * UNITS[match[2]]


def rows_of(text):
    """(saved bytes, kernel, call site) in the order of the table."""
    rows = []
    for line in text.splitlines():
        match = ROW.match(line)
        if match:
            rows.append([float(match[1]) * UNITS[match[2]], match[8], ""])
        elif rows and line.strip().startswith(("at ", "< ")):
            rows[-1][2] += line.strip() + " "
    return rows


def share_of_attention(rows):
    total = sum(saved for saved, _, _ in rows)
    return sum(saved for saved, _, site in rows if PLACE in site) / total if total else 0


def say(name, is_right, seen):
    print(f"ok {name}: {seen}" if is_right else f"not ok {name}: {seen}", flush=True)


def plan_at_half(folder, sequence, batch, shows):
    trace = record(folder, sequence, batch)
    text = run(f"{BUILD}/reprise-trace", "plan", trace, "--cap", str(int(peak_of(trace) / 2)))
    if shows:
        print(text)
    return rows_of(text)


def check(folder, shows):
    for _ in range(MOST_RECORDINGS):
        rows = plan_at_half(folder, 128, 4, shows)
        share, total = share_of_attention(rows), sum(saved for saved, _, _ in rows)
        first = next((row for row in rows if row[0] >= total / 10), (0, "nothing", ""))
        if share >= 0.7 and PLACE in first[2]:
            break
    say("attention is what half of the memory is saved by", share >= 0.7,
        f"{100 * share:.0f} % of what is saved at a sequence of 128")
    say("attention comes first among what saves a tenth or more", PLACE in first[2], f"{first[1]} {first[2]}")
    share = share_of_attention(plan_at_half(folder, 8, 64, False))
    say("attention does not come first where the sequence is short", share < 0.5,
        f"{100 * share:.0f} % of what is saved at a sequence of 8")


def main():
    if not os.access(f"{BUILD}/apps/gpt", os.X_OK) or not os.access(f"{BUILD}/device/libcuda.so.1", os.R_OK):
        print("skip attention: gpt or the CPU device is not built")
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(folder, "--show" in sys.argv)
        except RuntimeError as error:
            print(f"not ok attention: {error}")


if __name__ == "__main__":
    main()
