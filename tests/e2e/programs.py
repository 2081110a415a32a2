#!/usr/bin/env python3
"""The programs of tests/apps at their caps, against the oracle: the same standard output as the bare run.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` per check. Every figure comes from the run: the peak P is the
device's own high-water mark of the bare program.

usage: programs.py [--quick] [PROGRAM...]
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
REPRISE = os.path.join(ROOT, "scripts", "reprise")
FRAME = 65536
LARGE = 4 << 30
PROGRAMS = {"resnet": [], "lstm": [], "gpt": [], "mlp": [], "hostile": []}
RECOMPUTED = ("resnet", "lstm", "gpt", "mlp")
SHARES = (0.5, 0.33, 0.2)
SEEDS = 20
SHORT = ["--iters", "7"]   # for the many orders: recording, probation, and two planned iterations from the sixth on


class Run:
    """One process on the CPU device, and what it left behind."""

    def __init__(self, program, arguments, memory, reprise=None, jitter=0, timeout=300, settings=None):
        with tempfile.TemporaryDirectory() as folder:
            device, stats = os.path.join(folder, "device"), os.path.join(folder, "stats")
            environment = dict(os.environ, CPUDEV_MEMORY=str(memory), CPUDEV_STATS=device, **(settings or {}))
            if jitter:
                environment["CPUDEV_JITTER"] = str(jitter)
            command = [os.path.join(BUILD, "apps", program)] + arguments
            if reprise is None:
                folders = [os.path.join(BUILD, "device"), environment.get("LD_LIBRARY_PATH", "")]
                environment["LD_LIBRARY_PATH"] = ":".join(f for f in folders if f)
            else:
                command = [REPRISE, "run", "--device", "cpu", "--stats", stats] + reprise + ["--"] + command
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
                self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as late:
                self.status, self.output, self.errors = -1, "", f"no end after {late.timeout} s"
            self.device, self.stats = read_json(device), read_json(stats)
        self.peak = self.device.get("peak_bytes", 0)

    def last_error(self):
        lines = self.errors.strip().splitlines()
        return lines[-1] if lines else "no message"


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def steady_rows(run):
    return [row for row in run.stats.get("iterations", []) if row["index"] >= 5]


def judge(run, bare, cap, must_not_swap):
    """None, or what is wrong with a capped run."""
    if run.status != 0:
        return f"exit {run.status}: {run.last_error()}"
    if run.output != bare.output:
        return "output differs from the bare run's"
    if run.peak > cap:
        return f"the device's high-water mark {run.peak} is over the cap {cap}"
    if run.peak == 0 or not run.stats:
        return "no statistics"
    if run.stats["resident_peak_bytes"] > cap:
        return "the statistics admit more than the cap"
    if must_not_swap and run.stats["recipes"]["mismatched"]:
        return "what was recomputed differed"
    if must_not_swap:
        rows = steady_rows(run)
        if not rows:
            return "no iteration after the fifth in the statistics"
        for row in rows:
            if row["swapped_out_bytes"] or row["swapped_in_bytes"]:
                return f"iteration {row['index']} ({row['phase']}) swapped"
            if row["phase"] != "planned":
                return f"iteration {row['index']} is {row['phase']}"
        if sum(row["replayed_launches"] for row in rows) == 0:
            return "nothing was recomputed"
        if not 0 < run.stats["planned_peak_bytes"] <= run.stats["resident_peak_bytes"]:
            return (f"a peak of {run.stats['planned_peak_bytes']} was simulated, "
                    f"{run.stats['resident_peak_bytes']} was taken")
        if not run.stats["planned_seconds"] > rows[-1]["replayed_seconds"] > 0:
            return "the planned time does not hold the replays"
    return None


def say(name, problem):
    print(f"ok {name}" if problem is None else f"not ok {name}: {problem}", flush=True)


def check_rejections(run):
    rejected = run.stats.get("recipes", {}).get("rejected", 0)
    return None if rejected > 0 else "no recipe was rejected"


def capped_runs(program, arguments, share, cap, is_quick):
    """(name, reprise flags, program arguments, jitter seed, is the output without swap demanded)"""
    name = f"{program} at {share:g} P"
    recomputes = program in RECOMPUTED
    flags = ["--cap", str(cap)]
    yield name, flags, arguments, 0, recomputes
    yield f"{name}, strict", flags + ["--strict"], arguments, 0, recomputes
    if recomputes:
        yield f"{name}, no swap", flags + ["--no-swap"], arguments, 0, True
    yield f"{name}, two threads", flags, arguments + ["--threads", "2"], 0, recomputes
    for seed in range(1, (3 if is_quick else SEEDS) + 1):
        strict = ["--strict"] if seed % 2 else []
        yield f"{name}, order {seed}", flags + strict, arguments + SHORT, seed, recomputes


def check_program(pool, program, arguments, is_quick):
    bare = Run(program, arguments, LARGE)
    if bare.status != 0 or bare.peak == 0:
        say(f"{program} bare", f"exit {bare.status}, {bare.last_error()}")
        return
    say(f"{program} bare, P = {bare.peak} bytes", None)
    short_bare = Run(program, arguments + SHORT, LARGE)
    for share in SHARES:
        cap = int(bare.peak * share) // FRAME * FRAME
        short = Run(program, arguments, cap)
        failed_well = short.status == 2 and "out of memory" in short.errors
        say(f"{program} bare on {share:g} P is out of memory", None if failed_well else f"exit {short.status}")
        cases = list(capped_runs(program, arguments, share, cap, is_quick))
        runs = pool.map(lambda case: Run(program, case[2], cap, case[1], case[3]), cases)
        for case, run in zip(cases, runs):
            say(case[0], judge(run, short_bare if case[3] else bare, cap, case[4]))
            if program == "hostile" and case[3] == 0:
                say(f"{case[0]}, rejections", check_rejections(run))


def main():
    words = sys.argv[1:]
    is_quick = "--quick" in words
    chosen = [word for word in words if word != "--quick"] or list(PROGRAMS)
    for program in chosen:
        if program not in PROGRAMS:
            sys.exit(f"programs.py: no program {program}")
        if not os.access(os.path.join(BUILD, "apps", program), os.X_OK):
            print(f"skip {program}: not built")
            chosen.remove(program)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for program in chosen:
            check_program(pool, program, PROGRAMS[program], is_quick)


if __name__ == "__main__":
    main()
