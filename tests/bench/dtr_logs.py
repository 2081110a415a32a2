"""Section 4 of scripts/bench_plan: logs of the DTR prototype and others of the same kind.

A folder of logs has *.log.gz and, where known, reference_curves.tsv (published policies: model, policy, ratio,
budget_bytes, status, time_ratio) and lower_bounds.tsv (model, ratio, budget_bytes, cut_bound, best_known). A budget is
that of these tables where one has it, else a share of the peak of our own problem."""
import glob
import os

from plans import DATA, LONG_MS, SHORT_MS, bound_of, converted, cut_bound_of, plan, table, time_of
from verdicts import columns, judge, say, title

SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
BOUND_WITHIN = 5e-4  # of the undropped time
LEAST_BOUND = 1.002  # below, (bound - 1) is too small to divide by


def optional_table(folder, name):
    path = os.path.join(folder, name)
    return table(path) if os.path.exists(path) else []


def shown(value):
    return f"{value:.4f}" if isinstance(value, float) else str(value)


class Log:
    """One log, and what others say of it."""

    def __init__(self, path):
        self.path, folder = path, os.path.dirname(path)
        self.name = os.path.basename(path)[:-len(".log.gz")]
        self.curves = [row for row in optional_table(folder, "reference_curves.tsv") if row["model"] == self.name]
        self.bounds = {float(row["ratio"]): row for row in optional_table(folder, "lower_bounds.tsv")
                       if row["model"] == self.name and row["budget_bytes"]}
        self.problem = converted("dtr_to_problem.py", path)
        self.peak = plan(self.problem, [])[0]["peak"]

    def shares(self):
        known = {float(row["ratio"]) for row in self.curves} | set(self.bounds)
        return sorted((known - {1.0}) | set(SHARES if not self.bounds else ()), reverse=True)

    def cap(self, share):
        for row in [self.bounds.get(share)] + [row for row in self.curves if float(row["ratio"]) == share]:
            if row:
                return int(row["budget_bytes"])
        peaks = [int(row["baseline_peak_bytes"]) for row in self.curves if "baseline_peak_bytes" in row]
        return int((peaks[0] if peaks else self.peak) * share)

    def published(self, share):
        """(policy, time) of the best that completes, or what became of them."""
        rows = [row for row in self.curves if float(row["ratio"]) == share]
        times = [(float(row["time_ratio"]), row["policy"]) for row in rows if row["status"] == "ok"]
        if times:
            return min(times)[::-1]
        return (None, "none completes" if self.curves else "-")

    def their_bound(self, share):
        """Their cut bound; None where they have none or find the budget impossible."""
        text = self.bounds.get(share, {}).get("cut_bound", "")
        return float(text) if text not in ("", "inf") else None


class Quality:
    """Mean of (time - 1) / (bound - 1) where the bound exceeds 1.002."""

    def __init__(self):
        self.values = []

    def add(self, time, least):
        if least > LEAST_BOUND:
            self.values.append((time - 1) / (least - 1))

    def mean(self):
        return sum(self.values) / len(self.values) if self.values else 0


class Tally:
    def __init__(self):
        self.slowest, self.points, self.compared, self.completed = 0, 0, 0, 0
        self.worse, self.bounds, self.bound_points, self.missing, self.impossible, self.unknown = [], [], 0, [], [], []
        self.short, self.long, self.lowest = Quality(), Quality(), Quality()

    def add(self, log, share, quick, slow):
        name = f"{log.name} at {share:g}"
        theirs, their_bound = log.published(share)[1], log.their_bound(share)
        self.points += 1
        self.slowest = max(self.slowest, quick.cpu_ms)
        if isinstance(theirs, float):
            self.compared += 1
            for row in (quick, slow):
                if not row.found or time_of(row) > theirs + 5e-5:
                    self.worse.append(f"{name}: {shown(time_of(row)) if row.found else 'no plan'}, published {theirs:.4f}")
        if not quick.found or not slow.found:
            is_impossible = float("inf") in (quick.bound, slow.bound)
            open_points = self.missing if their_bound is not None else self.unknown
            (self.impossible if is_impossible else open_points).append(f"{name}: {quick.strategy}")
            return
        self.completed += 1
        least = their_bound if their_bound is not None else bound_of(quick)
        if their_bound is not None:
            self.bound_points += 1
            if abs(cut_bound_of(quick) - their_bound) > BOUND_WITHIN:
                self.bounds.append(f"{name}: cut {cut_bound_of(quick):.5f}, lower_bounds.tsv {their_bound:.5f}")
        for quality, row in ((self.short, quick), (self.long, slow)):
            (quality if share >= 0.2 else self.lowest).add(time_of(row), least)  # asked for 0.9 to 0.2


def plan_log(log, tally, is_quick):
    shares = log.shares()
    caps = [log.cap(share) for share in shares]
    short = plan(log.problem, caps, deadline=SHORT_MS)[1]
    long = plan(log.problem, caps, deadline=LONG_MS)[1] if not is_quick else short
    rows = []
    for share, quick, slow in zip(shares, short, long):
        tally.add(log, share, quick, slow)
        policy, time = log.published(share)
        best_known = log.bounds.get(share, {}).get("best_known") or "-"
        ours = [shown(time_of(row)) if row.found else "none" for row in (quick, slow)]
        ours[1] = "-" if is_quick else ours[1]
        rows.append((log.name, f"{share:g}", shown(time), policy or "", log.bounds.get(share, {}).get("cut_bound") or "-",
                     f"{bound_of(quick):.5f}" if quick.found else "-", best_known, *ours, f"{quick.cpu_ms:.0f}",
                     quick.strategy if quick.found else ""))
    return rows


def judge_logs(tally, what, is_quick):
    for line in tally.worse + tally.bounds + tally.missing + tally.impossible:
        print(line)
    if tally.compared:
        judge(not tally.worse, 4, f"{what}never worse than the best published policy",
              f"worse at {len(tally.worse)} of {tally.compared} points")
    judge(tally.short.mean() <= 1.05, 4, f"{what}mean (time - 1) / (bound - 1) <= 1.05 in 0.3 s",
          f"{tally.short.mean():.4f} over {len(tally.short.values)} points, at most {tally.slowest:.0f} ms of the processor "
          "each")
    if not is_quick:
        judge(tally.long.mean() <= 1.03, 4, f"{what}the same <= 1.03 in 4 s", f"{tally.long.mean():.4f}")
    if tally.bound_points:
        judge(not tally.missing, 4, f"{what}completes wherever the bound is finite", f"missing: {len(tally.missing)}; proven impossible: {len(tally.impossible)}")
        judge(not tally.bounds, 4, f"{what}our cut bound agrees with lower_bounds.tsv",
              f"within {BOUND_WITHIN:.2%} of the undropped time at all but {len(tally.bounds)} of {tally.bound_points} points")
    print(f"a plan at {tally.completed} of {tally.points} points; no plan, no proof, and no bound of others that would ask for "
          f"one: {', '.join(line.split(':')[0] for line in tally.unknown) or 'nowhere'}")
    print(f"mean at 0.1 of the peak, where there is a plan, in both times: {tally.lowest.mean():.4f} (none asked)")


HEADING = ("log", "budget", "published", "policy", "bound", "our bound", "best known", "0.3 s", "4 s", "ms", "made by")


def dtr_logs(is_quick):
    title(4, "Logs of the DTR prototype",
          "asked: at every budget 0.9 to 0.2 never worse than the best published policy; mean of (time - 1) / (bound - 1)\n"
          "<= 1.05 in 0.3 s of planning and <= 1.03 in 4 s; a plan at 0.1 wherever the bound is finite; the bound as in "
          "lower_bounds.tsv",
          "Times are multiples of the undropped run. published: best policy of the prototype that completes; bound and best "
          "known: from\nlower_bounds.tsv; 0.3 s, 4 s: our plan with that much planning; ms: of the processor for the first. "
          "LOGS=FOLDER[:FOLDER..]\nadds logs of one's own, with reference_curves.tsv and lower_bounds.tsv where there are.")
    folders = [f"{DATA}/dtr"] + [folder for folder in os.environ.get("LOGS", "").split(":") if folder]
    for k, folder in enumerate(folders):
        paths = sorted(glob.glob(f"{folder}/*.log.gz"))
        what = f"{os.path.basename(os.path.normpath(folder))}: " if k else ""
        if not paths:
            say("skip", 4, f"{what}DTR logs", f"{folder} has no *.log.gz")
            continue
        tally, rows = Tally(), [HEADING]
        for path in paths:
            rows += plan_log(Log(path), tally, is_quick)
        columns(rows)
        judge_logs(tally, what, is_quick)


def deep_chains(is_quick):
    title(4, "Deep synthetic graphs (time, and our bound, by share of the peak)",
          "asked: that they be tried; no figure")
    quality, shares = Quality(), (0.7, 0.5, 0.33, 0.2)
    names = ["chain:1000", "random-chain:1000:3", "varied-chain:1000:3", "resnet:300", "recurrent:150", "training:500:7",
             "random:800:7"]
    rows = [("", *shares)]
    for name in names if not is_quick else names[:3]:
        _, found = plan(name, shares)
        for row in found:
            if row.found:
                quality.add(time_of(row), bound_of(row))
        rows.append((name, *(f"{time_of(row):.4f}, {bound_of(row):.4f}" if row.found else "no plan" for row in found)))
    columns(rows)
    print(f"mean (time - 1) / (bound - 1): {quality.mean():.4f} over {len(quality.values)} points")
