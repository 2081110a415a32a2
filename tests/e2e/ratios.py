#!/usr/bin/env python3
"""Time under Reprise against bare time, measured side by side: runs alternate, medians of the steady iterations.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` per check. A machine that is busy otherwise shows in both; where
the first rounds miss the limit, more rounds are added, up to MOST_ROUNDS.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import BUILD, FRAME, LARGE, Run, judge, say

WARM = 5
MOST_ROUNDS = 5
LONG_CHAIN = ["--layers", "1000", "--width", "8", "--image", "16", "--batch", "16", "--iters", "9", "--timing"]
FITTING = ["--layers", "200", "--iters", "16", "--timing"]


def steady_seconds(run):
    words = [line.split() for line in run.errors.splitlines() if line.startswith("time ")]
    return [float(seconds) for _, index, seconds in words if int(index) > WARM]


def measure(arguments, reprise, memory, limit, check):
    """Ratio of medians over alternating runs; what check(run, bare) says is wrong ends it."""
    bare_seconds, seconds, ratio = [], [], 0.0
    for _ in range(MOST_ROUNDS):
        bare = Run("resnet", arguments, LARGE)
        run = Run("resnet", arguments, memory, reprise)
        problem = check(run, bare)
        if problem:
            return 0.0, problem, run
        bare_seconds += steady_seconds(bare)
        seconds += steady_seconds(run)
        if not seconds or not bare_seconds:
            return 0.0, "no timing", run
        ratio = statistics.median(seconds) / statistics.median(bare_seconds)
        if ratio <= limit:
            break
    return ratio, None if ratio <= limit else f"{ratio:.3f} x the bare time, over {limit}", run


def check_fits():
    bare = Run("resnet", FITTING, LARGE)
    cap = (bare.peak * 5 // 4) // FRAME * FRAME

    def judge_fit(run, bare_again):
        problem = judge(run, bare_again, cap, False)
        if problem is None and run.stats["outcome"] != "fits":
            problem = f"the outcome is {run.stats['outcome']}"
        if problem is None and any(row["replayed_launches"] for row in run.stats["iterations"]):
            problem = "something was replayed"
        return problem

    ratio, problem, _ = measure(FITTING, ["--cap", str(cap)], LARGE, 1.02, judge_fit)
    say(f"resnet with a cap above its peak: {ratio:.3f} x the bare time", problem)


def check_long_chain():
    bare = Run("resnet", LONG_CHAIN, LARGE)
    cap = int(bare.peak / 6.86) // FRAME * FRAME

    def judge_chain(run, bare_again):
        return judge(run, bare_again, cap, True)

    ratio, problem, run = measure(LONG_CHAIN, ["--cap", str(cap), "--no-swap"], cap, 1.30, judge_chain)
    planned = run.stats.get("planned_seconds", 0)
    say(f"resnet of 1,000 layers at P / 6.86 = {cap} bytes: {ratio:.3f} x the bare time "
        f"(an iteration planned at {planned:.3f} s)", problem)


def main():
    if not os.access(os.path.join(BUILD, "apps", "resnet"), os.X_OK):
        print("skip ratios: resnet is not built")
        return
    check_fits()
    check_long_chain()


if __name__ == "__main__":
    main()
