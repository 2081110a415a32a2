"""Sections 2 and 3 of scripts/bench_plan: plans against least possible ones, found without the planner: by the exhaustive
search of tests/bench/exhaustive.c, and by OR-Tools CP-SAT (scripts/optimum.py)."""
import hashlib
import os
import subprocess
import sys

from plans import BUILD, caps_between, generated, plan
from verdicts import columns, judge, say, title


def exhaustive(path, caps, *options):
    """Per cap: added nanoseconds, "infeasible" or "unknown"."""
    command = [f"{BUILD}/bench/exhaustive", *options, path, *map(str, caps)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [int(word) if word.isdigit() else word for word in (line.split()[1] for line in lines)]


class Comparison:
    """Plans against least possible ones, by the ratio of the whole times."""

    HEADING = ("", "points", "optimal", "mean", "worst", "no plan", "impossible", "not solved")

    def __init__(self):
        self.points, self.equal, self.impossible, self.unsolved = 0, 0, 0, 0
        self.missed, self.wrong, self.ratios = [], [], []

    def add(self, name, row, least):
        if least == "unknown":
            self.unsolved += 1
            return
        if least == "infeasible":
            self.impossible += 1
            if row.found:
                self.wrong.append(f"{name} at {row.cap} bytes: planned what is impossible")
            return
        self.points += 1
        if not row.found:
            self.missed.append(f"{name} at {row.cap} bytes: no plan; the optimum adds {least}")
            return
        if row.added < least or row.bound > least:
            self.wrong.append(f"{name} at {row.cap} bytes: {row.added} added, bound {row.bound}, optimum {least}")
        self.equal += row.added == least
        self.ratios.append(((row.run + row.added) / max(row.run + least, 1), name, row.cap, row.added, least))

    def over(self, limit):
        return [entry for entry in self.ratios if entry[0] > limit]

    def is_met(self, limit):
        return self.points > 0 and not (self.missed or self.wrong or self.over(limit))

    def cells(self, name):
        values = [entry[0] for entry in self.ratios] or [1]
        return (name, self.points, self.equal, f"{sum(values) / len(values):.5f}", f"{max(values):.4f}",
                len(self.missed), self.impossible, self.unsolved)

    def show_faults(self, limit):
        for value, name, cap, added, least in sorted(self.over(limit), reverse=True)[:8]:
            print(f"{name} at {cap} bytes: {added} added, optimum {least}: {value:.4f} of the optimal time")
        for line in self.missed[:8] + self.wrong[:8]:
            print(line)


def merged(comparisons):
    whole = Comparison()
    for one in comparisons:
        for field, value in vars(one).items():
            setattr(whole, field, getattr(whole, field) + value)
    return whole


def compare(names, parts):
    """Against the exhaustive search."""
    comparison = Comparison()
    for name in names:
        caps = caps_between(name, parts)
        _, rows = plan(name, caps)
        for row, least in zip(rows, exhaustive(generated(name), caps)):
            comparison.add(name, row, least)
    return comparison


LEGEND = ("A point is a problem under a cap, from the floor to the undropped peak. optimal: the plan takes the least "
          "possible time;\nmean, worst: its time divided by that; no plan: there is one, and none was found; impossible: "
          "no plan exists (and none was\nmade); not solved: the search was given up.")


def check_search(section, names, parts):
    """The exhaustive search against itself without anything that shortens it."""
    points, differing, given_up = 0, [], 0
    for name in names:
        caps = caps_between(name, parts)
        for cap, short, plain in zip(caps, exhaustive(generated(name), caps), exhaustive(generated(name), caps, "--plain")):
            if "unknown" in (short, plain):
                given_up += 1
                continue
            points += 1
            if short != plain:
                differing.append(f"{name} at {cap} bytes: {short}, plainly {plain}")
    print("\n".join(differing), end="\n" if differing else "")
    judge(points > 0 and not differing, section, "the search equals one that tries everything",
          f"{points} points, {len(differing)} differ" + (f", {given_up} too large for that" if given_up else ""))


def heterogeneous_chains(is_quick):
    count = 30 if is_quick else 200
    title(2, "Heterogeneous chains",
          f"asked: equal to an exhaustive search on 200 random chains of up to 10 steps{' (here: 30)' if is_quick else ''}",
          LEGEND)
    # Their searches grow with the number of tapes: few steps.
    kinds = {"3 to 10 steps, random sizes and times": [f"random-chain:{3 + s % 8}:{s}" for s in range(1, count + 1)],
             "3 to 6 steps, tapes, weights, workspace, far-spread numbers":
                 [f"varied-chain:{3 + s % 4}:{s}" for s in range(1, count + 1)]}
    parts = (0, 0.125, 0.25, 0.375, 0.5, 0.75)
    found = {name: compare(names, parts) for name, names in kinds.items()}
    columns([Comparison.HEADING] + [one.cells(name) for name, one in found.items()])
    for name, one in found.items():
        one.show_faults(1)
        judge(one.is_met(1), 2, f"equal to the optimum on {count} chains ({name})", f"{one.equal} of {one.points} points")
    check_search(2, [f"{kind}:{3 + s % 2}:{s}" for kind in ("random-chain", "varied-chain") for s in range(1, 16)],
                 (0, 0.3, 0.6))


class Solver:
    """scripts/optimum.py, with what it found before."""

    def __init__(self):
        self.python = f"{BUILD}/optimum/bin/python"
        self.path = f"{BUILD}/optimum/known.tsv"
        self.known = {}
        self.is_there = self.install()
        if self.is_there and os.path.exists(self.path):
            for line in open(self.path):
                digest, cap, value = line.split()
                self.known[digest, int(cap)] = value

    def install(self):
        works = [self.python, "-c", "import ortools.sat.python.cp_model"]
        if os.path.exists(self.python) and subprocess.run(works, capture_output=True).returncode == 0:
            return True
        print("installing OR-Tools into build/optimum", flush=True)
        steps = ([sys.executable, "-m", "venv", f"{BUILD}/optimum"],
                 [self.python, "-m", "pip", "install", "-q", "ortools==9.*"], works)
        return all(subprocess.run(step, capture_output=True).returncode == 0 for step in steps)

    @staticmethod
    def digest(path):
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read().removesuffix(b"end\n")).hexdigest()[:24]

    def ask(self, questions):
        """[(path, cap)] -> [added, "infeasible" or "unknown"]"""
        digests = {path: self.digest(path) for path, _ in questions}
        new = [(path, cap) for path, cap in questions if (digests[path], cap) not in self.known]
        lines = "".join(f"{path} {cap}\n" for path, cap in new)
        if len(new) > 20:
            print(f"CP-SAT works on {len(new)} points; what it finds is kept in {self.path}", flush=True)
        with subprocess.Popen([self.python, "scripts/optimum.py", "-"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process, open(self.path, "a") as kept:
            process.stdin.write(lines)
            process.stdin.close()
            for line in process.stdout:
                path, cap, value = line.split()[:3]
                self.known[digests[path], int(cap)] = value
                print(digests[path], cap, value, file=kept, flush=True)
        values = [self.known.get((digests[path], cap), "unknown") for path, cap in questions]
        return [int(value) if value.isdigit() else value for value in values]


# Name, problems by seed, does CP-SAT solve them in seconds?
GRAPHS = (
    ("7 to 11 operations, random", lambda s: f"random:{7 + s % 5}:{s}", True),
    ("4 to 7 layers and their training", lambda s: f"training:{4 + s % 4}:{s}", True),
    ("6 to 9 operations, dense, in place, pinned", lambda s: f"mixed:{6 + s % 4}:{s}", False),
)


def solve_graphs(names, solver):
    """(comparison, points solved by CP-SAT, points at which it disagrees with the exhaustive search)"""
    questions, ours, comparison, solved, disagree = [], [], Comparison(), 0, []
    for name in names:
        caps = caps_between(name, (0.25, 0.625))
        questions += [(generated(name), cap) for cap in caps]
        ours += [(name, row) for row in plan(name, caps)[1]]
    for (path, cap), (name, row), least in zip(questions, ours, solver.ask(questions)):
        second = exhaustive(path, [cap])[0]
        solved += least != "unknown"
        if "unknown" not in (least, second) and least != second:
            disagree.append(f"{name} at {cap} bytes: CP-SAT {least}, exhaustive search {second}")
        comparison.add(name, row, second if least == "unknown" else least)
    return comparison, solved, disagree


def general_graphs(is_quick):
    count = 15 if is_quick else 100
    title(3, "General graphs",
          "asked: within 3 % of an exhaustive or integer-programme optimum on 200 random graphs small enough to solve "
          f"exactly,\nby an independent script with a published solver (scripts/optimum.py, OR-Tools CP-SAT)"
          f"{' (here: 30)' if is_quick else ''}", LEGEND)
    solver = Solver()
    rows, found, by_solver, disagree = [Comparison.HEADING], [], 0, []
    for name, problem, has_solver in GRAPHS:
        names = [problem(s) for s in range(1, count + 1)]
        if has_solver and not solver.is_there:
            say("skip", 3, name, "OR-Tools cannot be installed")
        elif has_solver:
            one, solved, differing = solve_graphs(names, solver)
            by_solver += solved
            disagree += differing
            found.append(one)
            rows.append(one.cells(name))
        else:
            one = compare(names, (0, 0.25, 0.5, 0.75))
            rows.append(one.cells(name))
            others = one
    columns(rows)
    whole = merged(found)
    for one, what in ((whole, f"within 3 % of the optimum on {2 * count} random graphs"),
                      (others, f"the same on {count} other graphs (denser, in place, pinned, read late)")):
        one.show_faults(1.03)
        if one is others or solver.is_there:
            judge(one.is_met(1.03), 3, what, f"{one.equal} of {one.points} points optimal, {len(one.over(1.03))} over 1.03, "
                  f"{len(one.missed)} without a plan")
    print("\n".join(disagree), end="\n" if disagree else "")
    if solver.is_there:
        asked = whole.points + whole.impossible + whole.unsolved
        judge(not disagree, 3, "CP-SAT and the exhaustive search agree",
              f"{by_solver} of {asked} points solved by CP-SAT, they differ at {len(disagree)}")
    check_search(3, [f"mixed:5:{s}" for s in range(1, 21)], (0, 0.3, 0.6))
