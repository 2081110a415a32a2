#!/usr/bin/env python3
"""The 1,000-layer residual network on the CPU device: planned from its own trace, and measured under the plan.

Measured is an iteration under the cap against one of the same program, under Reprise as well, with a cap that does not
bind: the bare program waits at every free and pays for fresh memory on this device, so against it a plan would look
better than it is. Seconds of the processor (all threads of the program) decide, since a machine that is busy otherwise
lengthens them little; seconds of the wall are printed beside. What is planned comes from --stats. Kernels run on one
thread, and the device's events tell the processor time that they take (CPUDEV_THREADS, CPUDEV_CLOCK): so what is recorded
does not depend on how many processors there are, or on what else they do.

The shape: 16 channels, one image of 80 x 80 pixels. There, as in real residual networks, convolutions take most of the
time (94 %; BatchNorm, ReLU and additions of the forward pass 2.4 %) and what persists little of the memory (2.6 %). Of a
plan for P / 6.86 nothing can be left out: all but an eighth of the activations go, three quarters of the convolutions of
the forward pass (each 27 % of the time of its layer) run again. Where BatchNorm weighs more (8 channels) or what persists
takes more of the cap (fewer pixels), no plan whatever is below 1.25, as the certified bound says.

usage: planned.py [--layers N] [--plan-only] [--rounds N]      prints `ok NAME: ...`, `not ok NAME: ...`, `skip NAME: ...`
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

BUILD = os.environ.get("BUILD", "build")
FRAME = 65536
MEMORY = 4 << 30
WARM, ITERATIONS = 5, 10
WITHIN = 0.03  # of the bare time
SHAPE = ["--width", "16", "--image", "80", "--batch", "1"]
CAPS = ((6.86, 1.25), (2, 1.05))  # peak divided by, greatest planned time
DEVICE = {"CPUDEV_MEMORY": str(MEMORY), "CPUDEV_THREADS": "1", "CPUDEV_CLOCK": "work"}
TICK = 1 / os.sysconf("SC_CLK_TCK")


def say(is_right, what, seen):
    print(f"{'ok' if is_right else 'not ok'} {what}: {seen}", flush=True)


def program(layers, iterations):
    return [f"{BUILD}/apps/resnet", "--layers", str(layers), *SHAPE, "--iters", str(iterations)]


def is_newer(path, *others):
    return os.path.exists(path) and all(os.path.getmtime(path) > os.path.getmtime(other) for other in others)


def plan_from_trace(layers):
    """One recording, kept in the build; planned as `reprise plan` would."""
    trace = f"{BUILD}/bench/resnet{layers}.trace"
    os.makedirs(f"{BUILD}/bench", exist_ok=True)
    if not is_newer(trace, f"{BUILD}/libreprise.so", f"{BUILD}/apps/resnet", __file__):
        subprocess.run(["scripts/reprise", "record", "-o", trace, "--device", "cpu", "--", *program(layers, 4)], check=True,
                       capture_output=True, env=dict(os.environ, **DEVICE))
    heading = subprocess.run([f"{BUILD}/bench/bench_policy", trace], check=True, capture_output=True, text=True).stdout.split()
    peak = int(heading[heading.index("demand") + 1])
    print(f"its trace: {heading[2]} operations, {int(heading[heading.index('run') + 1]) / 1e9:.2f} s, {peak / 2**20:.0f} MiB at "
          "the peak P", flush=True)
    for divisor, most in CAPS:
        command = [f"{BUILD}/bench/bench_policy", trace, "--deadline", "300", str(int(peak / divisor))]
        fields = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[1].split("\t")
        what = f"resnet of {layers} layers at P / {divisor:g}, planned from its trace <= {most}"
        if fields[1] != "ok":
            say(False, what, fields[8])
            continue
        run, added, bound = (int(word) for word in fields[2:5])
        say(1 + added / run <= most, what, f"{1 + added / run:.4f} (no plan is below {1 + bound / run:.4f}), "
            f"{float(fields[6]):.0f} ms of planning")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK


class Measured:
    """One run; what each steady iteration took."""

    def __init__(self, layers, cap):
        with tempfile.TemporaryDirectory() as folder:
            device, stats = os.path.join(folder, "device"), os.path.join(folder, "stats")
            environment = dict(os.environ, CPUDEV_STATS=device, **DEVICE)
            command = ["scripts/reprise", "run", "--device", "cpu", "--stats", stats, "--no-swap", "--cap", str(cap), "--",
                       *program(layers, ITERATIONS), "--timing"]
            self.wall, self.processor = self.follow(command, environment)
            with open(device) as stream:
                self.device_peak = json.load(stream)["peak_bytes"]
            with open(stats) as stream:
                self.stats = json.load(stream)

    @staticmethod
    def follow(command, environment):
        wall, processor, before = [], [], None
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as process:
            for line in process.stderr:
                if not line.startswith("time "):
                    continue
                _, index, seconds = line.split()
                now = processor_seconds(process.pid)
                if int(index) > WARM:
                    wall.append(float(seconds))
                    processor.append(now - before)
                before = now
        if process.returncode:
            raise RuntimeError(f"exit {process.returncode} of {' '.join(command)}")
        return wall, processor

    def replayed(self):
        return self.stats["iterations"][-1]["replayed_seconds"]

    def planned_ratio(self):
        planned = self.stats["planned_seconds"]
        return planned / (planned - self.replayed())


class Series:
    """Runs at one cap, beside free ones."""

    def __init__(self, divisor, most, cap):
        self.divisor, self.most, self.cap, self.runs = divisor, most, cap, []

    def ratio(self, free, clock):
        return (statistics.median(value for run in self.runs for value in getattr(run, clock)) /
                statistics.median(value for run in free for value in getattr(run, clock)))

    def planned(self):
        return statistics.median(run.planned_ratio() for run in self.runs)

    def is_close(self, free):
        # Doing better than planned by more than that is as wrong a plan.
        return abs(self.ratio(free, "processor") - self.planned()) <= WITHIN

    def judge(self, layers, free):
        run, name = self.runs[-1], f"resnet of {layers} layers at P / {self.divisor:g}"
        say(self.is_close(free), f"{name}, measured within 0.03 of the plan",
            f"planned {self.planned():.3f}, measured {self.ratio(free, 'processor'):.3f} by the processor's time, "
            f"{self.ratio(free, 'wall'):.3f} by the wall ({len(self.runs)} runs of {len(run.wall)} iterations)")
        say(self.planned() <= self.most, f"{name}, planned while it runs <= {self.most}", f"{self.planned():.3f}")
        is_held = run.stats["planned_peak_bytes"] <= run.device_peak <= self.cap
        say(is_held, f"{name}, memory", f"planned {run.stats['planned_peak_bytes']}, the device's own high-water mark "
            f"{run.device_peak}, cap {self.cap}")


def measure(layers, rounds):
    free, series = [], []
    for _ in range(rounds):
        free.append(Measured(layers, MEMORY // 4 * 3))
        if not series:
            peak = free[0].stats["demand_peak_bytes"]
            series = [Series(divisor, most, int(peak / divisor) // FRAME * FRAME) for divisor, most in CAPS]
            print(f"with a cap that does not bind: {statistics.median(free[0].processor):.2f} s of the processor an iteration",
                  flush=True)
        for one in series:
            one.runs.append(Measured(layers, one.cap))
        if all(one.is_close(free) for one in series):
            break
    for one in series:
        one.judge(layers, free)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.strip().rpartition("usage: ")[2])
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plan-only", action="store_true")
    options = parser.parse_args()
    if not os.access(f"{BUILD}/apps/resnet", os.X_OK) or not os.access(f"{BUILD}/device/libcuda.so.1", os.R_OK):
        print("skip resnet: resnet or the CPU device is not built (make)")
        return
    plan_from_trace(options.layers)
    if not options.plan_only:
        measure(options.layers, options.rounds)


if __name__ == "__main__":
    main()
