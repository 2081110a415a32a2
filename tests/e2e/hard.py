#!/usr/bin/env python3
"""Programs with hard habits under Reprise: the same output as the bare run's, under the cap.

usage: hard.py [--full] [PROGRAM|PROGRAM:CASE...]

Every case of every build/apps/hard_PROGRAM runs bare, then under caps that are shares of its own peak: plain, strict,
without swapping, and in adversarial orders. Without swapping a run may end as out of memory, and where kernels compute
something else the second time because what was recomputed differs: never with other output. --full runs every
combination."""
import concurrent.futures
import os
import subprocess
import sys

import programs
from programs import BUILD, FRAME, say

APPS = os.path.join(BUILD, "apps")
DEVICE = os.path.join(BUILD, "device")
LARGE = 1 << 30
PROGRAMS = ("memory", "streams", "pointers", "control", "calls", "unread", "driver")
# Cases that by their nature cannot be held at a small share: the least share that swapping must hold.
LEAST_SHARE = {("memory", "arenas"): 0.7, ("pointers", "long-table"): 0.4, ("calls", "rows"): 0.4,
               ("memory", "sized-by-free"): 0.1}
# What no proof could foresee may stop with a reason: an unproven recipe when the iteration is given up, unreadable code
# that first writes after the recording.
MAY_STOP = {("control", "held-generated"), ("unread", "adjusted-early"), ("unread", "adjusted-late"),
            ("unread", "adjusted-in-forward"), ("unread", "told-by-host-function")}
# The kernel reads and advances a generator's state: as BatchNorm does its statistics, but here the output depends on it.
# Only probation can tell.
MAY_DIFFER = {("control", "generator-inside")}
# Cases that take long: only one capped run each unless --full.
SLOW = ("long-run", "many-allocations")


class Run(programs.Run):
    """One case of one program. The cap is on the first device."""

    def __init__(self, program, case, memory, flags=None, jitter=0, timeout=120):
        devices = "2" if (program, case) == ("driver", "peers") else "1"
        super().__init__("hard_" + program, [case], memory, flags, jitter, timeout,
                         {"REPRISE_LOG": "info", "CPUDEV_COUNT": devices})
        self.peak = self.device.get("device_peak_bytes", [0])[0]


def judge(run, bare, cap, may_stop, may_differ):
    """None, or what is wrong with a capped run."""
    if run.peak > cap:
        return f"the device's high-water mark {run.peak} is over the cap {cap}"
    has_differed = "reprise: stopped" in run.errors
    if run.status in (2, 3) and may_stop and (may_differ if has_differed else "out of memory" in run.errors):
        return None if bare.output.startswith(run.output) else "wrong output before it stopped"
    if run.status != 0:
        return f"exit {run.status}: {run.last_error()}"
    if run.output != bare.output:
        return "output differs from the bare run's"
    mismatched = run.stats.get("recipes", {}).get("mismatched", 0)
    if mismatched and not may_differ:
        return f"{mismatched} recomputed versions differed"
    return None


def runs_of(program, case, peak, is_full):
    """(name, cap, flags, jitter seed, may it stop)"""
    shares = (0.6, 0.4, 0.25) if is_full else (0.4,)
    for share in shares:
        cap = int(peak * share) // FRAME * FRAME
        may_stop = share < LEAST_SHARE.get((program, case), 0) or (program, case) in MAY_STOP
        flags = ["--cap", str(cap)]
        if not is_full and case in SLOW:
            yield f"at {share:g}", cap, flags, 0, may_stop
            continue
        if is_full:
            yield f"at {share:g}", cap, flags, 0, may_stop
        yield f"at {share:g}, strict", cap, flags + ["--strict"], 0, may_stop
        yield f"at {share:g}, no swap", cap, flags + ["--no-swap"], 0, True
        seeds = range(1, 21) if is_full and share == 0.4 and case not in SLOW else (1,)
        for seed in seeds:
            strict = ["--strict"] if seed % 2 == 0 else []
            yield f"at {share:g}, order {seed}", cap, flags + strict, seed, may_stop


def check_case(pool, program, case, is_full):
    name = f"{program}:{case}"
    bare = Run(program, case, LARGE)
    if bare.status != 0 or bare.peak == 0:
        say(f"{name} bare", f"exit {bare.status}, {bare.last_error()}")
        return
    todo = list(runs_of(program, case, bare.peak, is_full))
    runs = pool.map(lambda one: Run(program, case, one[1], one[2], one[3]), todo)
    for (suffix, cap, _, _, may_stop), run in zip(todo, runs):
        problem = judge(run, bare, cap, may_stop, (program, case) in MAY_DIFFER | MAY_STOP)
        outcome = run.stats.get("outcome", "?") if run.status == 0 else f"exit {run.status}"
        say(f"{name} {suffix} ({outcome})", problem)


def cases_of(program):
    environment = dict(os.environ, LD_LIBRARY_PATH=DEVICE)
    done = subprocess.run([os.path.join(APPS, "hard_" + program), "list"], env=environment, capture_output=True,
                          text=True, timeout=60, check=False)
    return done.stdout.split()


def main():
    if os.environ.get("REPRISE_TEST_DEVICE") == "gpu":
        print("skip hard: on the CPU device only")
        return
    words = sys.argv[1:]
    is_full = "--full" in words
    chosen = [word for word in words if word != "--full"] or list(PROGRAMS)
    for word in chosen:
        program, _, only = word.partition(":")
        if program not in PROGRAMS:
            sys.exit(f"hard.py: no program {program}")
        if not os.access(os.path.join(APPS, "hard_" + program), os.X_OK):
            print(f"skip {program}: not built")
            continue
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case in cases_of(program):
                if only in ("", case):
                    check_case(pool, program, case, is_full)


if __name__ == "__main__":
    main()
