#!/usr/bin/env python3
"""Frameworks that nobody here wrote, unmodified, from PyPI, on the CPU device: bare, and under Reprise.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`, and a closing count. Needs PyPI for the first run; the
virtual environment stays in build/frameworks.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
VENV = os.path.join(BUILD, "frameworks")
PYTHON = os.path.join(VENV, "bin", "python")
FRAME = 65536
STEPS = 10
counts = {"ok": 0, "not ok": 0, "skip": 0}


def say(name, problem=None, is_skip=False):
    word = "skip" if is_skip else "ok" if problem is None else "not ok"
    counts[word] += 1
    print(f"{word} {name}" + (f": {problem}" if problem else ""), flush=True)


def prepare():
    if not os.path.exists(PYTHON):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    probe = subprocess.run([PYTHON, "-c", "import tinygrad, numpy"], capture_output=True, check=False)
    if probe.returncode != 0:
        subprocess.run([PYTHON, "-m", "pip", "-q", "install", "tinygrad", "numpy"], check=True)


def toolkit_libraries():
    """Folder of NVRTC, beside the compiler that the build uses."""
    make = ["make", "-s", "-C", ROOT, "print-cuda-home"]
    home = subprocess.run(make, capture_output=True, text=True, check=False).stdout.strip()
    for folder in (os.path.join(home, "lib64"), os.path.join(home, "lib")):
        if os.path.isdir(folder):
            return folder
    return ""


class Run:
    def __init__(self, arguments, backend, cap=None, memory=2 << 30):
        with tempfile.TemporaryDirectory() as folder:
            device, stats = os.path.join(folder, "device"), os.path.join(folder, "stats")
            environment = dict(os.environ, DEV=backend, CPUDEV_MEMORY=str(memory), CPUDEV_STATS=device, LRU="0",
                               NO_MEMORY_PLANNER="1", PYTHONDONTWRITEBYTECODE="1")
            folders = [os.path.join(BUILD, "device"), toolkit_libraries(), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(part for part in folders if part)
            command = [PYTHON, os.path.join(HERE, "tinygrad_train.py")] + arguments
            if cap is not None:
                launcher = os.path.join(ROOT, "scripts", "reprise")
                command = [launcher, "run", "--device", "cpu", "--cap", str(cap), "--stats", stats, "--"] + command
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
            self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
            self.peak = read_json(device).get("peak_bytes", 0)
            self.stats = read_json(stats)

    def losses(self):
        return [float.fromhex(line.split()[2]) for line in self.output.splitlines() if line.startswith("step ")]

    def fault(self):
        lines = self.errors.strip().splitlines()
        return f"exit {self.status}: {lines[-1] if lines else 'no message'}"


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def compare_backends(run, reference):
    if run.status != 0:
        return run.fault()
    if reference.status != 0:
        return f"tinygrad's CPU backend: {reference.fault()}"
    worst = max((abs(a - b) / max(abs(b), 1e-6) for a, b in zip(run.losses(), reference.losses())), default=1)
    return None if len(run.losses()) == STEPS and worst < 1e-3 else f"losses differ from the CPU backend's by {worst:.1e}"


def judge_capped(run, bare, cap):
    if run.status != 0:
        return run.fault()
    if run.output != bare.output:
        return "the output differs from the bare run's"
    return None if 0 < run.peak <= cap else f"the device's high-water mark is {run.peak}, the cap {cap}"


def check_model(kind, backend):
    name = f"tinygrad {kind} on {backend}"
    reference = Run([kind, str(STEPS)], "CPU")
    bare = Run([kind, str(STEPS)], backend)
    problem = compare_backends(bare, reference)
    say(f"{name}: losses agree with tinygrad's own CPU backend", problem)
    if problem:
        return
    again = Run([kind, str(STEPS)], backend)
    say(f"{name}: the same bits run to run", None if again.output == bare.output else "they differ")
    for share in (0.5, 0.33):
        cap = int(bare.peak * share) // FRAME * FRAME
        run = Run([kind, str(STEPS)], backend, cap)
        outcome = run.stats.get("outcome", "no statistics")
        say(f"{name} under Reprise at {share:g} of {bare.peak} bytes: output equal, outcome {outcome}",
            judge_capped(run, bare, cap))
    jit = Run([kind, str(STEPS), "jit"], backend)
    say(f"{name} with its JIT (graphs): losses agree", compare_backends(jit, reference))


def main():
    try:
        prepare()
    except (OSError, subprocess.CalledProcessError) as fault:
        say("frameworks", f"no virtual environment: {fault}", is_skip=True)
    else:
        for backend in ("CUDA", "CUDA:PTX"):
            for kind in ("conv", "transformer"):
                check_model(kind, backend)
    print(f"{counts['ok']} passed, {counts['not ok']} failed, {counts['skip']} skipped")
    return 1 if counts["not ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
