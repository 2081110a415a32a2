#!/usr/bin/env python3
"""The least time that any legal plan without swapping adds, by OR-Tools CP-SAT: exact, for small problems.

usage: optimum.py PROBLEM CAP...       PROBLEM in the text form (policy/text.h), CAP in bytes
       optimum.py -                    lines of `PROBLEM CAP` on standard input

Nothing is shared with the planner: the text is read here, and the model is written from what policy/problem.h says
a legal plan is. A plan is a sequence of executions, first runs and replays in any order, with any drops in between;
everything else (stages, one rebuild per stage, an order of rebuilding) would be a restriction and is not assumed.

One line per cap: PROBLEM, CAP, the least added nanoseconds ("infeasible", or "unknown" where time ran out), and the number of
replays in that plan. The number of executions has to be limited; the limit is raised until no plan with more of
them could cost less. Needs ortools from PyPI (scripts/bench_plan installs it into build/optimum).
"""
import sys

NEVER = 1 << 32


class Operation:
    def __init__(self, nanoseconds):
        self.nanoseconds = nanoseconds
        self.workspace = self.scratch = 0
        self.until = NEVER  # greatest position at which it may be replayed
        self.reads, self.writes = [], []


class Version:
    def __init__(self, size, producer):
        self.size, self.producer = size, producer
        self.replaces, self.kept, self.droppable = None, False, 0


class Problem:
    def __init__(self, lines):
        self.fixed, self.operations, self.versions = 0, [], []
        for line in lines:
            words = line.split("#")[0].split()
            if words:
                self.read_statement(words)

    def read_statement(self, words):
        if words[0] == "fixed":
            self.fixed = int(words[1])
        elif words[0] == "op":
            self.read_operation(words[1:])
        elif words[0] in ("in", "out"):
            self.read_version(words)
        elif words[0] not in ("reprise-problem", "frame", "bandwidth", "end"):
            raise ValueError(f"unknown statement {words[0]}")

    def read_operation(self, words):
        operation = Operation(int(words[0]))
        self.operations.append(operation)
        colon = words.index(":") if ":" in words else len(words)
        operation.reads = [int(word) for word in words[colon + 1:]]
        for word in words[1:colon]:
            key, value = word.split("=")
            if key == "workspace":
                operation.workspace = int(value)
            elif key == "scratch":
                operation.scratch = int(value)
            elif key == "until":
                operation.until = 0 if value == "never" else int(value)
            elif key != "name":
                raise ValueError(f"unknown attribute {word}")

    def read_version(self, words):
        version = Version(int(words[1]), len(self.operations) - 1 if words[0] == "out" else None)
        for word in words[2:]:
            if word == "kept":
                version.kept = True
            elif word.startswith("replaces="):
                version.replaces = int(word[9:])
            elif word.startswith("droppable="):
                version.droppable = NEVER if word[10:] == "never" else int(word[10:])
            elif word != "swappable":
                raise ValueError(f"unknown attribute {word}")
        if version.producer is not None:
            self.operations[version.producer].writes.append(len(self.versions))
        self.versions.append(version)


class Model:
    """Executions 0 .. count - 1; run[t][o]: execution t is the program's own run of o; again[t][o]: a replay of it;
    there[t][v]: version v is there when execution t begins, after the drops before it; left[t][v]: after it."""

    def __init__(self, problem, cap, count):
        from ortools.sat.python import cp_model
        self.problem, self.count = problem, count
        self.model = cp_model.CpModel()
        flags = self.flags
        operations, versions = len(problem.operations), len(problem.versions)
        self.run, self.again = flags("run", operations), flags("again", operations)
        self.there, self.left = flags("there", versions), flags("left", versions)
        self.order_runs()
        for t in range(count):
            for o in range(operations):
                self.limit_replay(t, o)
                self.require_inputs(t, o)
            for v in range(versions):
                self.follow_version(t, v)
            self.hold_cap(t, cap)
        for v, version in enumerate(problem.versions):
            if version.kept:
                self.model.add(self.left[count - 1][v] == 1)
        self.model.minimize(sum(operation.nanoseconds * self.again[t][o]
                                for t in range(count) for o, operation in enumerate(problem.operations)))

    def flags(self, name, width):
        return [[self.model.new_bool_var(f"{name}_{t}_{k}") for k in range(width)] for t in range(self.count)]

    def order_runs(self):
        """Every operation runs once, in order; idle executions stand at the end. has_run[t][o]: before execution t."""
        operations = range(len(self.problem.operations))
        self.has_run = [[self.model.new_bool_var(f"has_run_{t}_{o}") for o in operations]
                        for t in range(self.count + 1)]
        for o in operations:
            self.model.add(self.has_run[0][o] == 0)
            self.model.add(self.has_run[self.count][o] == 1)
        for t in range(self.count):
            for o in operations:
                self.model.add(self.has_run[t + 1][o] == self.has_run[t][o] + self.run[t][o])
                if o:
                    self.model.add_implication(self.run[t][o], self.has_run[t][o - 1])
        busy = [sum(self.run[t]) + sum(self.again[t]) for t in range(self.count)]
        for t in range(self.count):
            self.model.add(busy[t] <= 1)
            if t:
                self.model.add(busy[t] <= busy[t - 1])

    def position_is_at_least(self, t, position):
        """A literal, or a constant: `position` operations have run before execution t."""
        if position <= 0:
            return True
        if position > len(self.problem.operations):
            return False
        return self.has_run[t][position - 1]

    def limit_replay(self, t, o):
        operation, again = self.problem.operations[o], self.again[t][o]
        if operation.until == 0:
            self.model.add(again == 0)
            return
        self.model.add_implication(again, self.has_run[t][o])
        too_late = self.position_is_at_least(t, operation.until + 1)
        if too_late is not False:
            self.model.add_implication(again, too_late.Not())

    def require_inputs(self, t, o):
        operation, there = self.problem.operations[o], self.there[t]
        for executed in (self.run[t][o], self.again[t][o]):
            for v in operation.reads:
                self.model.add_implication(executed, there[v])
            for v in operation.writes:
                old = self.problem.versions[v].replaces
                if old is not None:
                    self.model.add_bool_or([executed.Not(), there[v], there[old]])

    def executed(self, t, o):
        return self.run[t][o] + self.again[t][o]

    def follow_version(self, t, v):
        version, model = self.problem.versions[v], self.model
        there, left = self.there[t][v], self.left[t][v]
        if t == 0:
            before = 1 if version.producer is None else 0
        else:
            before = self.left[t - 1][v]
        model.add(there <= before)
        droppable = self.position_is_at_least(t, version.droppable)
        if droppable is False:
            model.add(there == before)
        elif droppable is not True:
            model.add(before - there <= droppable)
        made = self.executed(t, version.producer) if version.producer is not None else 0
        successor = next((w for w, other in enumerate(self.problem.versions) if other.replaces == v), None)
        if successor is None:
            model.add(left >= there)
            model.add(left >= made)
            model.add(left <= there + made)
            return
        taken = model.new_bool_var(f"taken_{t}_{v}")  # its bytes go to the version that replaces it
        over, after = self.executed(t, self.problem.versions[successor].producer), self.there[t][successor]
        model.add(taken <= over)
        model.add(taken + after <= 1)
        model.add(taken >= over - after)
        model.add(left <= 1 - taken)
        model.add(left <= there + made)
        model.add(left >= there - taken)
        model.add(left >= made - taken)

    def hold_cap(self, t, cap):
        problem = self.problem
        terms = [version.size * self.there[t][v] for v, version in enumerate(problem.versions)]
        for o, operation in enumerate(problem.operations):
            terms.append(operation.workspace * self.executed(t, o) + operation.scratch * self.again[t][o])
            for v in operation.writes:
                version = problem.versions[v]
                if version.replaces is None:
                    terms.append(version.size * self.executed(t, o))
                else:  # in place, unless it is there already: then into scratch
                    scratch = self.model.new_bool_var(f"scratch_{t}_{v}")
                    self.model.add(scratch >= self.executed(t, o) + self.there[t][v] - 1)
                    terms.append(version.size * scratch)
        self.model.add(problem.fixed + sum(terms) <= cap)


def solve(problem, cap, count, seconds):
    """(status, added nanoseconds, replays) for plans of at most `count` executions."""
    from ortools.sat.python import cp_model
    model = Model(problem, cap, count)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model.model)
    if status == cp_model.OPTIMAL:
        replays = sum(solver.value(flag) for row in model.again for flag in row)
        return "optimal", round(solver.objective_value), replays
    return ("infeasible" if status == cp_model.INFEASIBLE else "unknown"), None, None


def least_added(problem, cap, seconds=20.0):
    """(added nanoseconds, replays, True); (None, None, True) where no plan holds the cap, (None, None, False) where time
    ran out."""
    floor = problem.fixed + sum(version.size for version in problem.versions if version.producer is None)
    if floor > cap:
        return None, None, True
    operations = len(problem.operations)
    quickest = min((o.nanoseconds for o in problem.operations if o.until), default=1) or 1
    most = 3
    while True:
        status, added, replays = solve(problem, cap, operations + most, seconds)
        if status == "unknown":
            return None, None, False
        if status == "optimal" and added < (most + 1) * quickest:
            return added, replays, True
        if status == "infeasible" and most >= 3 * operations:
            return None, None, True  # believed: no plan of four times as many executions as there are operations
        limit = added if added is not None else 3 * operations * quickest
        most = min(max(2 * most, 1), max(limit // quickest, most + 1))


def answer(path, caps):
    try:
        with open(path) as stream:
            problem = Problem(stream)
        caps = [int(word) for word in caps]
    except (OSError, ValueError, IndexError) as error:
        sys.exit(f"{path}: {error}")
    for cap in caps:
        added, replays, is_known = least_added(problem, cap)
        words = (added, replays) if added is not None else ("infeasible" if is_known else "unknown",)
        print(path, cap, *words, flush=True)


def main():
    if sys.argv[1:] == ["-"]:
        for line in sys.stdin:
            path, *caps = line.split()
            answer(path, caps)
    elif len(sys.argv) > 2:
        answer(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__.split("\n\n")[1])


if __name__ == "__main__":
    main()
