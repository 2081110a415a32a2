#!/usr/bin/env python3
"""The 1,000-layer residual network on the CPU device: what its plan promises, and what is measured.

Measured is an iteration under the cap against one of the same program, under Reprise as well, with a cap that does not
bind: the bare program waits at every free and pays for fresh memory on this device, so against it a plan would look
better than it is. Seconds of the processor (all threads of the program) decide, since a machine that is busy otherwise
does not lengthen them; seconds of the wall are printed beside. What is planned comes from --stats.

usage: planned.py [--layers N]      prints `ok NAME: ...`, `not ok NAME: ...` or `skip NAME: ...`
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
FRAME = 65536
MEMORY = 4 << 30
WARM, ITERATIONS, MOST_ROUNDS = 5, 12, 3
WITHIN = 0.03  # of the bare time
SHAPE = ["--width", "8", "--image", "16", "--batch", "16"]
TICK = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK


class Measured:
    """One run; what each steady iteration took."""

    def __init__(self, layers, cap, iterations=ITERATIONS):
        with tempfile.TemporaryDirectory() as folder:
            device, stats = os.path.join(folder, "device"), os.path.join(folder, "stats")
            environment = dict(os.environ, CPUDEV_MEMORY=str(MEMORY), CPUDEV_STATS=device)
            command = ["scripts/reprise", "run", "--device", "cpu", "--stats", stats, "--no-swap", "--cap", str(cap), "--",
                       f"{BUILD}/apps/resnet", "--layers", str(layers), *SHAPE, "--iters", str(iterations), "--timing"]
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


def compare(layers, peak, divisor, most):
    cap = int(peak / divisor) // FRAME * FRAME
    free, held = [], []
    for _ in range(MOST_ROUNDS):
        free.append(Measured(layers, peak * 5 // 4))
        held.append(Measured(layers, cap))
        ratios = [statistics.median(value for run in held for value in getattr(run, clock)) /
                  statistics.median(value for run in free for value in getattr(run, clock))
                  for clock in ("processor", "wall")]
        planned = statistics.median(run.planned_ratio() for run in held)
        if abs(ratios[0] - planned) <= WITHIN:
            break
    run, name = held[-1], f"resnet of {layers} layers at P / {divisor:g}"
    seen = f"planned {planned:.3f}, measured {ratios[0]:.3f} by the processor's time, {ratios[1]:.3f} by the wall"
    # Doing better than planned by more than that is as wrong a plan.
    print(f"{'ok' if abs(ratios[0] - planned) <= WITHIN else 'not ok'} {name}: {seen}", flush=True)
    print(f"{'ok' if planned <= most else 'not ok'} {name}, planned <= {most}: {planned:.3f}", flush=True)
    is_held = run.stats["planned_peak_bytes"] <= run.device_peak <= cap
    print(f"{'ok' if is_held else 'not ok'} {name}, memory: planned {run.stats['planned_peak_bytes']}, the device's own "
          f"high-water mark {run.device_peak}, cap {cap}", flush=True)


def main():
    layers = int(sys.argv[2]) if sys.argv[1:2] == ["--layers"] else 1000
    if not os.access(f"{BUILD}/apps/resnet", os.X_OK) or not os.access(f"{BUILD}/device/libcuda.so.1", os.R_OK):
        print("skip planned: resnet or the CPU device is not built")
        return
    peak = Measured(layers, MEMORY, 2).stats["demand_peak_bytes"]
    compare(layers, peak, 6.86, 1.25)
    compare(layers, peak, 2, 1.05)


if __name__ == "__main__":
    main()
