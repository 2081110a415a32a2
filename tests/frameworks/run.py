#!/usr/bin/env python3
"""Frameworks that nobody here wrote, unmodified, from PyPI, on the CPU device: bare, and under Reprise.

usage: run.py [tinygrad|numba|nvml|nvjitlink|torch|others ...]       all of them without arguments

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
DEVICE = os.path.join(BUILD, "device")
VENV = os.path.join(BUILD, "frameworks")
PYTHON = os.path.join(VENV, "bin", "python")
LAUNCHER = os.path.join(ROOT, "scripts", "reprise")
PACKAGES = ["tinygrad", "numba-cuda", "numba", "nvidia-nvvm", "nvidia-cuda-nvrtc", "nvidia-cuda-cccl",
            "nvidia-cuda-runtime", "nvidia-nvjitlink", "nvidia-ml-py", "numpy"]
FRAME = 65536
STEPS = 10
SHARES = (0.5, 0.33)
counts = {"ok": 0, "not ok": 0, "skip": 0}


def say(name, problem=None, is_skip=False):
    word = "skip" if is_skip else "ok" if problem is None else "not ok"
    counts[word] += 1
    print(f"{word} {name}" + (f": {problem}" if problem else ""), flush=True)


def prepare():
    if not os.path.exists(PYTHON):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    probe = subprocess.run([PYTHON, "-c", "import tinygrad, numpy, numba_cuda, pynvml, cuda.bindings.nvjitlink"],
                           capture_output=True, check=False)
    if probe.returncode != 0:
        subprocess.run([PYTHON, "-m", "pip", "-q", "install"] + PACKAGES, check=True)


def toolkit_libraries():
    """Folder of NVRTC, beside the compiler that the build uses."""
    make = ["make", "-s", "-C", ROOT, "print-cuda-home"]
    home = subprocess.run(make, capture_output=True, text=True, check=False).stdout.strip()
    for folder in (os.path.join(home, "lib64"), os.path.join(home, "lib")):
        if os.path.isdir(folder):
            return folder
    return ""


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


class Run:
    """A program of this folder, run to its end. With a cap: under Reprise; the launcher puts the device in front."""

    def __init__(self, arguments, settings=None, cap=None, python=PYTHON):
        with tempfile.TemporaryDirectory() as folder:
            device, stats = os.path.join(folder, "device"), os.path.join(folder, "stats")
            environment = dict(os.environ, CPUDEV_MEMORY=str(2 << 30), CPUDEV_STATS=device, PYTHONDONTWRITEBYTECODE="1",
                               CPUDEV_RUN=os.path.join(folder, "run"))  # other users of the device are not seen
            environment.update(settings or {})
            folders = [DEVICE if cap is None else "", toolkit_libraries(), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(part for part in folders if part)
            command = [python, os.path.join(HERE, arguments[0])] + arguments[1:]
            if cap is not None:
                command = [LAUNCHER, "run", "--device", "cpu", "--cap", str(cap), "--stats", stats, "--"] + command
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, check=False)
            self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
            self.peak = read_json(device).get("peak_bytes", 0)
            self.outcome = read_json(stats).get("outcome", "no statistics")

    def losses(self):
        return [float.fromhex(line.split()[2]) for line in self.output.splitlines() if line.startswith("step ")]

    def fault(self):
        lines = self.errors.strip().splitlines() or self.output.strip().splitlines()
        return f"exit {self.status}: {lines[-1] if lines else 'no message'}"


def judge_same(run, bare):
    if run.status != 0:
        return run.fault()
    return None if run.output == bare.output else "the output differs from the bare run's"


def check_capped(name, arguments, settings, bare, outcomes=("recompute",)):
    """The bare output at each share of the bare peak; the cap is kept."""
    for share in SHARES:
        cap = int(bare.peak * share) // FRAME * FRAME
        run = Run(arguments, settings, cap)
        problem = judge_same(run, bare)
        if problem is None and not 0 < run.peak <= cap:
            problem = f"the device's high-water mark is {run.peak}, the cap {cap}"
        if problem is None and run.outcome not in outcomes:
            problem = f"outcome {run.outcome}"
        say(f"{name} under Reprise at {share:g} of {bare.peak} bytes: output equal, cap kept, outcome {run.outcome}",
            problem)


def compare_losses(run, reference):
    if run.status != 0:
        return run.fault()
    if reference.status != 0:
        return f"the reference: {reference.fault()}"
    worst = max((abs(a - b) / max(abs(b), 1e-6) for a, b in zip(run.losses(), reference.losses())), default=1)
    return None if len(run.losses()) == STEPS and worst < 1e-3 else f"losses differ from the reference by {worst:.1e}"


def check_graphs(name, arguments, settings, bare):
    """Graphs hold addresses: what they touch stays. Half the peak is then either enough or refused, in one line."""
    cap = bare.peak // 2 // FRAME * FRAME
    run = Run(arguments, dict(settings, JIT="1"), cap)
    is_refused = run.status != 0 and run.outcome == "oom" and "reprise: out of memory: memory that must stay" in run.errors
    problem = None if is_refused else judge_same(run, bare)
    if problem is None and run.peak > cap:
        problem = f"the device's high-water mark is {run.peak}, the cap {cap}"
    say(f"{name} under Reprise, its graphs kept: {'refused in one line' if is_refused else 'output equal'}", problem)
    run = Run(arguments, dict(settings, JIT="1"), 2 * bare.peak)
    say(f"{name} under Reprise, its graphs kept, cap not binding: output equal", judge_same(run, bare))


def check_tinygrad():
    for kind in ("conv", "transformer"):
        program = ["tinygrad_train.py", kind, str(STEPS)]
        reference = Run(program, {"DEV": "CPU"})
        for backend in ("CUDA", "CUDA:PTX"):
            for jit in ([], ["jit"]):
                name = f"tinygrad {kind} on {backend}{' with its JIT (graphs)' if jit else ''}"
                settings = {"DEV": backend, "LRU": "0", "NO_MEMORY_PLANNER": "1"}
                bare = Run(program + jit, settings)
                problem = compare_losses(bare, reference)
                say(f"{name}: losses agree with tinygrad's own CPU backend", problem)
                if problem is None:
                    say(f"{name}: the same bits run to run", judge_same(Run(program + jit, settings), bare))
                    if jit:
                        check_graphs(name, program + jit, settings, bare)
                    # Its JIT writes into the same buffers in every step: nothing to recompute, and the launcher leaves
                    # the graphs out.
                    check_capped(name, program + jit, settings, bare,
                                 outcomes=("recompute", "reactive", "swap") if jit else ("recompute",))


def check_numba():
    settings = {"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0", "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT": "0",
                "PYTHONWARNINGS": "ignore", "LD_PRELOAD": os.path.join(DEVICE, "libnvJitLink.so.13")}
    kernels = Run(["numba_programs.py", "kernels"], settings)
    for line in kernels.output.splitlines():
        name, _, verdict = line.rpartition(" ")[0].rpartition(" ") if " wrong by " not in line else (line, "", line)
        say(f"numba: {name} as NumPy has it", None if verdict == "right" else line)
    say("numba: all kernels ran", None if kernels.status == 0 else kernels.fault())
    say("numba: kernels under Reprise: output equal", judge_same(Run(["numba_programs.py", "kernels"], settings,
                                                                    cap=5 << 20), kernels))
    program = ["numba_programs.py", "train"]
    bare = Run(program, settings)
    say("numba: a perceptron's losses as NumPy has them", None if bare.status == 0 else bare.fault())
    say("numba: the same bits run to run", judge_same(Run(program, settings), bare))
    check_capped("numba", program, settings, bare,
                 outcomes=("recompute", "swap", "reactive"))  # a third is close to what one layer needs


def check_nvml():
    for name, cap in (("", None), (" under Reprise", 1 << 30)):
        run = Run(["nvml_query.py"] + (["pooled"] if cap else []), None, cap)
        lines = [line for line in run.output.splitlines() if line.startswith(("ok ", "not ok "))]
        for line in lines:
            word, _, rest = line.partition("ok ")
            question, _, problem = rest.partition(": ")
            say(f"nvidia-ml-py{name}: {question}", (problem or "wrong") if word else None)
        say(f"nvidia-ml-py{name}: all questions asked", None if lines and run.status == 0 else run.fault())


def check_nvjitlink():
    run = Run(["nvjitlink_load.py"])
    for line in run.output.splitlines():
        word, _, rest = line.partition("ok ")
        say(f"nvJitLink: {rest}", "see the line" if word else None)
    say("nvJitLink: all loaded or refused", None if run.status == 0 and run.output else run.fault())


def check_torch():
    """PyTorch's wheel and what torch.compile makes. Only where it is installed: it is several GB."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        say("torch", "not installed (build/frameworks/bin/pip install torch)", is_skip=True)
        return
    assembler = os.path.join(ROOT, "tests", "device", "ptxas")
    settings = {"LD_PRELOAD": os.path.join(DEVICE, "libcudart.so.13"), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
                "TRITON_PTXAS_PATH": assembler, "TRITON_PTXAS_BLACKWELL_PATH": assembler, "TRITON_DEFAULT_FP_FUSION": "1"}
    reference = Run(["torch_train.py", "cpu", str(STEPS)])
    program = ["torch_train.py", "cuda", str(STEPS)]
    bare = Run(program, settings)
    problem = compare_losses(bare, reference)
    say("torch.compile: losses agree with PyTorch on the CPU", problem)
    if problem is None:
        say("torch.compile: the same bits run to run", judge_same(Run(program, settings), bare))
        check_capped("torch.compile", program, settings, bare, outcomes=("recompute", "swap", "reactive"))


def check_others():
    """What does not run here, and where it stops: told, not judged."""
    run = Run(["others.py"])
    for line in run.output.splitlines():
        print(line, flush=True)
    say("others: told", None if run.status == 0 else run.fault())


def main():
    checks = {"tinygrad": check_tinygrad, "numba": check_numba, "nvml": check_nvml, "nvjitlink": check_nvjitlink,
              "torch": check_torch, "others": check_others}
    wanted = sys.argv[1:] or list(checks)
    unknown = [name for name in wanted if name not in checks]
    if unknown:
        print(f"run.py: no such framework: {unknown[0]} (there are {', '.join(checks)})", file=sys.stderr)
        return 2
    try:
        prepare()
    except (OSError, subprocess.CalledProcessError) as fault:
        say("frameworks", f"no virtual environment: {fault}", is_skip=True)
    else:
        for name in wanted:
            checks[name]()
    print(f"{counts['ok']} passed, {counts['not ok']} failed, {counts['skip']} skipped")
    return 1 if counts["not ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
