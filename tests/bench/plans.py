"""Problems and plans for scripts/bench_plan: build/bench/bench_policy, its rows, and where problems come from."""
import collections
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
DATA = "../shared/data"
SHORT_MS, LONG_MS = 300, 4000  # planning effort
WORK = tempfile.TemporaryDirectory()

# One plan: times in nanoseconds. found is False where there is none; strategy says why, then, and bound is infinite
# where it is proven that none exists. cut: the part of the bound that a cut at one position shows.
Row = collections.namedtuple("Row", "cap found run added bound peak cpu_ms wall_ms strategy cut")


def time_of(row):
    """Of the whole iteration, as a multiple of one that drops nothing."""
    return 1 + row.added / row.run if row.run else 1.0


def bound_of(row):
    """What no plan can be below, as the planner certifies."""
    return 1 + row.bound / row.run if row.run else 1.0


def cut_bound_of(row):
    """The same by a cut at one position alone, as others publish it."""
    return 1 + row.cut / row.run if row.run else 1.0


def read_row(line):
    fields = line.split("\t")
    if fields[1] != "ok":
        bound = float("inf") if fields[4] == "impossible" else 0
        return Row(int(fields[0]), False, 0, 0, bound, 0, float(fields[6]), float(fields[7]), fields[8], 0)
    return Row(int(fields[0]), True, *(int(word) for word in fields[2:6]), float(fields[6]), float(fields[7]), fields[8],
               int(fields[9]))


def plan(problem, caps, *options, deadline=SHORT_MS):
    """(heading, rows): heading has operations, versions, peak, floor, run. Caps up to 2 are shares of the peak."""
    command = [f"{BUILD}/bench/bench_policy", problem, "--deadline", str(deadline), *options, *map(str, caps)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    words = lines[0].split()
    return {key: int(value) for key, value in zip(words[1::2], words[2::2])}, [read_row(line) for line in lines[1:]]


def table(path):
    with open(path) as stream:
        names = stream.readline().rstrip("\n").split("\t")
        return [dict(zip(names, line.rstrip("\n").split("\t"))) for line in stream]


def generated(name):
    """The file of a problem KIND:SIZE[:SEED]."""
    path = os.path.join(WORK.name, name.replace(":", "_"))
    if not os.path.exists(path):
        with open(path, "w") as out:
            subprocess.run([f"{BUILD}/reprise-policy", "generate", name], check=True, stdout=out)
    return path


def converted(script, *arguments):
    path = os.path.join(WORK.name, "_".join(word.strip("./").replace("/", "_") for word in arguments))
    if not os.path.exists(path):
        with open(path, "w") as out:
            subprocess.run([sys.executable, f"scripts/{script}", *arguments], check=True, stdout=out)
    return path


def caps_between(problem, parts):
    """Caps between the floor (0) and the undropped peak (1)."""
    heading, _ = plan(problem, [])
    span = heading["peak"] - heading["floor"]
    return sorted({heading["floor"] + int(span * part) for part in parts})
