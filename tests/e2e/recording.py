#!/usr/bin/env python3
"""Recording: the programs' output stays what it is, the trace says what happened, whatever becomes of the process.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` per check.

usage: recording.py [NAME...]   only checks whose name holds one of these
"""
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import BUILD, REPRISE, ROOT, read_json, say

DEVICE = os.path.join(BUILD, "device")
SHOW = os.path.join(BUILD, "e2e", "show_trace")
PYTHON = os.path.join(ROOT, "tests", "e2e", "python")
KILLS = 20
SHORT = {"resnet": ["--iters", "5"], "gpt": ["--iters", "5"]}
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK")


def application(name, *arguments):
    return [os.path.join(BUILD, "apps", name)] + SHORT.get(name, []) + list(arguments)


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if key not in RANKS}
    return dict(clean, **more)


def bare(command):
    done = subprocess.run(command, env=environment(LD_LIBRARY_PATH=DEVICE), capture_output=True, text=True, timeout=120)
    return done.stdout


class Recorded:
    """A command under the launcher, with its trace and statistics."""

    def __init__(self, folder, command, flags=(), verb="run", **more):
        self.trace, stats, device = (os.path.join(folder, name) for name in ("trace", "stats", "device"))
        where = ["-o", self.trace] if verb == "record" else ["--trace", self.trace]
        launcher = [REPRISE, verb, "--device", "cpu", "--stats", stats] + where + list(flags) + ["--"]
        done = subprocess.run(launcher + command, env=environment(CPUDEV_STATS=device, **more),
                              capture_output=True, text=True, timeout=120, cwd=folder)
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.stats, self.device = read_json(stats), read_json(device)
        self.lines = [line for line in self.errors.splitlines() if not line.startswith("reprise: set for frameworks")]


def show(path, *more):
    """The facts of a trace: {key: number}, and with "stacks" under "stacks" a list of (allocations, operations, text)."""
    done = subprocess.run([SHOW, path] + list(more), capture_output=True, text=True, timeout=60)
    if done.returncode:
        return {"error": done.stderr.strip() or f"show_trace ended with {done.returncode}"}
    facts, stacks = {}, []
    for line in done.stdout.splitlines():
        if line.startswith("stack "):
            _, lives, operations, text = (line + " ").split(" ", 3)
            stacks.append((int(lives), int(operations), text))
        else:
            key, value = line.split()
            facts[key] = int(value)
    return dict(facts, stacks=stacks)


def wrong(facts, **wanted):
    """None, or the first fact that is not as wanted."""
    if "error" in facts:
        return facts["error"]
    for key, value in wanted.items():
        if not (value(facts[key]) if callable(value) else facts[key] == value):
            return f"{key} is {facts[key]}"
    return None


def whole(run, output, **wanted):
    if run.status != 0 or run.output != output:
        return f"exit {run.status}, output {'equal' if run.output == output else 'differs'}: {run.errors[-200:]}"
    return wrong(show(run.trace), cut=0, **wanted)


def check_programs(folder):
    """Recorded: the same output; sums that agree with the device's own count; a cap adds replays and movements."""
    for name in ("resnet", "gpt"):
        output = bare(application(name))
        run = Recorded(folder, application(name), verb="record")
        problem = whole(run, output, lost=0, replays=0, analysed=lambda n: n >= 1, boundaries=lambda n: n >= 3,
                        timed=lambda n: n > 0, counters_agree=1, outside=0)
        peak, facts = run.device.get("peak_bytes"), show(run.trace)
        if not problem and facts["device_peak"] != peak:
            problem = f"the device counts {peak} bytes, the trace {facts['device_peak']}"
        if not problem and facts["demand_peak"] != run.stats["demand_peak_bytes"]:
            problem = f"held at the peak: {facts['demand_peak']}, by the statistics {run.stats['demand_peak_bytes']}"
        say(f"{name} recorded: same output, sums agree", problem)
        cap = peak // 3 // 65536 * 65536
        run = Recorded(folder, application(name, "--iters", "8"), ["--cap", str(cap)])
        problem = whole(run, bare(application(name, "--iters", "8")), lost=0, replays=lambda n: n > 0,
                        moves=lambda n: n > 0, cap=cap, counters_agree=1, device_peak=lambda n: n <= cap)
        say(f"{name} recorded under a third of its peak", problem)


def check_sites(folder):
    """Launches and allocations of gpt are named with file and line."""
    run = Recorded(folder, application("gpt"), verb="record")
    facts = show(run.trace, "stacks")
    lines = open(os.path.join(ROOT, "tests", "apps", "attention.cu"), encoding="utf-8").read().splitlines()
    wanted = [f"causal_softmax_forward (tests/apps/attention.cu:{number})" for number, text in enumerate(lines, 1)
              if "softmax_forward_kernel<<<" in text]
    texts = [text for _, operations, text in facts.get("stacks", []) if operations]
    problem = None
    if not any(f"*{place}" in text for text in texts for place in wanted):
        problem = f"no launch at {wanted}"
    elif not all("main (tests/apps/gpt.cu:" in text for text in texts):
        problem = "a stack does not reach main"
    elif any(lives and "device_make_bytes (tests/apps/device.cu:" not in text
             for lives, _, text in facts["stacks"][1:]):
        problem = "an allocation without its place"
    say("launches of gpt: file and line", problem)
    stripped = os.path.join(folder, "gpt")
    shutil.copy(application("gpt")[0], stripped)
    subprocess.run(["strip", stripped], check=True)
    run = Recorded(folder, [stripped, "--iters", "3"], verb="record")
    os.remove(stripped)
    shutil.copy(application("resnet")[0], stripped)  # another program by the same name
    facts = show(run.trace, "stacks")
    texts = [text for _, operations, text in facts.get("stacks", []) if operations]
    is_told = bool(texts) and all("gpt+0x" in text and ".cu" not in text for text in texts)
    say("a program that is stripped, then another one: module and offset", None if is_told else str(texts[:1]))


def check_threads(folder):
    output = bare(application("gpt", "--threads", "2"))
    run = Recorded(folder, application("gpt", "--threads", "2"), verb="record")
    say("two threads", whole(run, output, lost=0, threads=lambda n: n >= 2, counters_agree=1))


def wait_for(path, seconds=10):
    end = time.time() + seconds
    while time.time() < end and not os.path.exists(path):
        time.sleep(0.002)


def check_killed(folder):
    """kill -9 at any moment: the file reads up to there, and says that it was cut."""
    trace, problem, held = os.path.join(folder, "trace"), None, 0
    rng = random.Random(5)
    for number in range(KILLS):
        command = [REPRISE, "record", "-o", trace, "--device", "cpu", "--"] + application("resnet", "--iters", "100000")
        if number % 2:
            command[1:4] = ["run", "--cap", "3MiB", "--trace", trace]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(trace)
        time.sleep(rng.random() ** 3 * 0.8)
        process.send_signal(signal.SIGKILL)
        process.wait()
        facts = show(trace)
        problem = problem or wrong(facts, cut=1)
        held += facts.get("submitted", 0) > 100
        os.remove(trace)
    if not problem and held < KILLS // 3:
        problem = f"only {held} of {KILLS} files held anything"
    say(f"killed {KILLS} times at any moment: what was written reads, and is said to be cut", problem)


def check_running(folder):
    """The file of a program that still runs reads, and grows."""
    trace = os.path.join(folder, "trace")
    process = subprocess.Popen([REPRISE, "record", "-o", trace, "--device", "cpu", "--"] +
                               application("resnet", "--iters", "100000"), env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(trace)
    time.sleep(0.5)
    first = show(trace)
    time.sleep(0.5)
    second = show(trace)
    process.kill()
    process.wait()
    problem = wrong(first, cut=1) or wrong(second, cut=1, submitted=lambda n: n > first["submitted"] > 0)
    say("the trace of a running program reads and grows", problem)


def check_overflow(folder):
    output = bare(application("gpt"))
    run = Recorded(folder, application("gpt"), verb="record", REPRISE_TRACE_RING="4KiB")
    problem = whole(run, output, lost=lambda n: n > 0)
    if not problem and run.stats.get("dropped_records", 0) == 0:
        problem = "the statistics say that nothing was dropped"
    say("a ring that is too small drops events and counts them", problem)


def check_failures(folder):
    """Nothing that happens to the trace happens to the program."""
    output = bare(application("gpt"))
    train = [sys.executable, os.path.join(PYTHON, "train.py"), "libcuda.so.1", "held"]
    run = Recorded(folder, train + ["8192"], verb="record")
    say("a disk that gets full: one line, the program goes on, the file reads", whole_but_cut(run, bare(train)))
    for what, flags in (("no such folder", ["--trace", "/no/such/folder/trace"]), ("a folder", ["--trace", folder]),
                        ("no file", ["--trace", "/dev/full"])):
        run = Recorded(folder, application("gpt"), flags)
        told = [line for line in run.lines if "no trace" in line]
        problem = None
        if run.status != 0 or run.output != output:
            problem = f"exit {run.status}: {run.errors[-200:]}"
        elif len(run.lines) != 1 or len(told) != 1:
            problem = f"{len(run.lines)} lines: {run.errors[-300:]}"
        say(f"a trace that cannot be made ({what}): one line, the program goes on", problem)


def whole_but_cut(run, output):
    if run.status != 0 or run.output != output:
        return f"exit {run.status}: {run.errors[-200:]}"
    if len(run.lines) != 1 or "the trace is cut" not in run.errors:
        return f"{len(run.lines)} lines: {run.errors[-300:]}"
    return wrong(show(run.trace), cut=1)


def files_of(folder):
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(folder, "trace*")))


def clear(folder):
    for path in glob.glob(os.path.join(folder, "*")):
        os.remove(path)


def check_processes(folder):
    """One file per process that uses the device; a child of fork writes nothing."""
    mlp = application("mlp", "--iters", "2")
    clear(folder)
    run = Recorded(folder, [sys.executable, os.path.join(PYTHON, "children.py"), "libcuda.so.1"] + mlp, verb="record")
    names = files_of(folder)
    problem = None
    if run.output != "done\n" or len(names) != 2:
        problem = f"{names}, exit {run.status}: {run.errors[-300:]}"
    else:
        child = names[1].split(".")[-1]
        problem = wrong(show(run.trace), cut=0, lives=lambda n: n < 20) or \
            wrong(show(os.path.join(folder, names[1])), cut=0, process=int(child), submitted=lambda n: n > 20)
    say("forked children write nothing, a program that was started has its own file", problem)
    clear(folder)
    twice = ["sh", "-c", '"$@" >/dev/null; "$@"', "-"] + mlp
    for _ in range(2):
        Recorded(folder, twice, verb="record")
    names = files_of(folder)
    say("two programs, one after the other, twice: the first has the name, the other its number behind it",
        None if len(names) == 2 and names[0] == "trace" and names[1][6:].isdigit() else str(names))


def check_names(folder):
    mlp = application("mlp", "--iters", "2")
    for more, wanted in (({"RANK": "3", "WORLD_SIZE": "4"}, ["trace.rank3"]),
                         ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, ["trace.rank0"]),
                         ({"RANK": "0", "WORLD_SIZE": "1"}, ["trace"]), ({"SLURM_PROCID": "x"}, ["trace"])):
        clear(folder)
        Recorded(folder, mlp, verb="record", **more)
        names = files_of(folder)
        say(f"the name with {more}", None if names == wanted else str(names))
    clear(folder)
    run = Recorded(folder, mlp, ["--trace", os.path.join(folder, "trace.%r.%p")], RANK="5")
    names = files_of(folder)
    is_good = len(names) == 1 and names[0].startswith("trace.5.") and names[0][8:].isdigit()
    say("a name with %r and %p", None if is_good else f"{names} {run.errors[-200:]}")
    clear(folder)
    path = os.path.join(folder, "trace")
    with open(path, "w", encoding="utf-8") as file:
        file.write("a file of the user's\n")
    run = Recorded(folder, mlp, verb="record")
    with open(path, encoding="utf-8", errors="replace") as file:
        is_kept = file.read() == "a file of the user's\n"
    say("a file that is no trace is not overwritten", None if run.status == 2 and is_kept else f"exit {run.status}")


def interpreters():
    """3.9 .. 3.13, as far as they are here."""
    for minor in range(9, 14):
        found = glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
        paths = sorted(found) + [path for path in [shutil.which(f"python3.{minor}")] if path]
        working = [path for path in paths if subprocess.run([path, "-c", "import ctypes"], capture_output=True,
                                                            check=False).returncode == 0]
        yield minor, working[0] if working else None


def check_python(folder):
    """The Python frames of calls through ctypes, whether or not they keep the interpreter's lock."""
    script = os.path.join(PYTHON, "train.py")
    with open(script, encoding="utf-8") as file:
        lines = file.read().splitlines()
    launch = next(n for n, text in enumerate(lines, 1) if "cuLaunchKernel" in text)
    calls = [n for n, text in enumerate(lines, 1) if "self.launch_grow(" in text]
    for minor, path in interpreters():
        name = f"CPython 3.{minor}"
        if not path:
            print(f"skip {name}: not here", flush=True)
            continue
        for kind in ("held", "given up"):
            command = [path, script, "libcuda.so.1", kind]
            run = Recorded(folder, command, verb="record")
            problem = whole(run, bare(command), lost=0, analysed=lambda n: n >= 1)
            stacks = show(run.trace, "stacks").get("stacks", [])
            for number in calls if not problem else []:
                owner = "Network." if minor >= 11 else ""
                parts = [f"*{owner}launch_grow ({script}:{launch}) < {owner}iterate ({script}:{number}) < main ({script}:",
                         f"< <module> ({script}:"]
                found = [text for _, uses, text in stacks if uses == 30 and all(part in text for part in parts)]
                if len(found) != 1:
                    problem = f"{len(found)} stacks of the 30 launches at line {number}"
            say(f"{name}, the interpreter's lock {kind}: functions, files and lines", problem)


CHECKS = {"programs": check_programs, "sites": check_sites, "threads": check_threads, "killed": check_killed,
          "running": check_running, "overflow": check_overflow, "failures": check_failures,
          "processes": check_processes, "names": check_names, "python": check_python}


def main():
    wanted = sys.argv[1:]
    for name, check in CHECKS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        folder = tempfile.mkdtemp()
        try:
            check(folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
