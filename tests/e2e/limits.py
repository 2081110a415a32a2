#!/usr/bin/env python3
"""Caps below the floor: a refusal that the program understands, and one line that says which cap would do.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` per check.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import BUILD, FRAME, LARGE, PROGRAMS, Run, say

LINE = re.compile(r"^reprise: out of memory: (?P<what>.+) needs (?P<needed>\d+) bytes beside (?P<beside>\d+) that must "
                  r"stay, under a cap of (?P<cap>\d+); the smallest cap that would do for it is (?P<smallest>\d+) bytes$",
                  re.MULTILINE)
MOST_STEPS = 40


def refusal(run):
    lines = LINE.findall(run.errors)
    if run.status != 2 or not run.errors.rstrip().endswith("out of memory"):
        return None, f"exit {run.status}: {run.last_error()}"
    if len(lines) != 1:
        return None, f"{len(lines)} lines say why"
    found = LINE.search(run.errors)
    if run.stats.get("outcome") != "oom":
        return None, f"the outcome is {run.stats.get('outcome')}"
    return found, None


def climb(program, arguments, bare):
    """From far below the floor up, each time to the cap that the refusal named. What was wrong, and the caps tried."""
    caps = [4 * FRAME]
    while len(caps) <= MOST_STEPS:
        run = Run(program, arguments, LARGE, ["--cap", str(caps[-1])])
        if run.status == 0:
            problem = None if run.output == bare.output else "the output differs at the first cap that does"
            return (problem if len(caps) > 1 else "four frames are no cap below the floor"), caps
        found, problem = refusal(run)
        if problem:
            return f"cap {caps[-1]}: {problem}", caps
        smallest = int(found["smallest"])
        if smallest <= caps[-1] or smallest % FRAME:
            return f"cap {caps[-1]}: it says that {smallest} would do", caps
        if run.peak > caps[-1]:
            return f"cap {caps[-1]}: the device's high-water mark is {run.peak}", caps
        caps.append(smallest)
    return "no cap that was named did", caps


def check_named_caps(program, arguments):
    bare = Run(program, arguments, LARGE)
    problem, caps = climb(program, arguments, bare)
    say(f"{program}: refused below its floor with one line each time, runs at {caps[-1]} bytes of {bare.peak}", problem)


def check_no_swap(program, arguments):
    """Without swapping, below what recomputation can hold: refused when the plan shows it, and by the same line."""
    bare = Run(program, arguments, LARGE)
    run = Run(program, arguments, LARGE, ["--cap", str(bare.peak // 12 // FRAME * FRAME), "--no-swap"])
    if run.status == 0:
        problem = None if run.output == bare.output else "the output differs"
    else:
        _, problem = refusal(run)
        if problem is None and not bare.output.startswith(run.output):
            problem = "what was printed before the refusal differs"
    say(f"{program}: a twelfth of its peak without swapping is held or refused", problem)


def main():
    for program, arguments in PROGRAMS.items():
        if not os.access(os.path.join(BUILD, "apps", program), os.X_OK):
            print(f"skip {program}: not built")
            continue
        check_named_caps(program, arguments)
        check_no_swap(program, arguments)


if __name__ == "__main__":
    main()
