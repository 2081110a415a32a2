#!/usr/bin/env python3
"""How much of other people's PTX the translator takes:
    python3 tests/ptx/corpus.py [--compile] [--slow N] DIRECTORY...
Every .ptx below each DIRECTORY is translated, every kernel of it; with --compile the C compiler runs too. Prints a row
per directory (files, kernels, refused), what was refused by instruction and reason, and the N slowest kernels. Wants
build/device/translate (`make device`)."""
import argparse
import collections
import os
import re
import subprocess
import sys

BUILD = os.environ.get("BUILD", "build")
SHOWN = 3  # places per reason


def files_below(directory):
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(".ptx"):
                yield os.path.join(folder, name)


def translate(path, compiles):
    """Rows (file, kernel, instructions, seconds, why); a file that brings the translator down is a row of its own."""
    command = [BUILD + "/device/translate"] + (["--compile"] if compiles else []) + [path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    if done.returncode:
        rows.append([path, "?", "0", "0", "TRANSLATOR ENDED WITH %d" % done.returncode])
    return [(r[0], r[1], int(r[2]), float(r[3]), r[4]) for r in rows]


def reason_of(why):
    """The instruction and what of it, without line, function and registers."""
    why = re.sub(r"^PTX line \d+(, [^:]*)?: ", "", why)
    return re.sub(r"\d{3,}|'.*'", "...", why)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--slow", type=int, default=5)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    reasons, rows_all = collections.defaultdict(list), []
    print("%-44s %7s %8s %8s" % ("directory", "files", "kernels", "refused"))
    for directory in options.directories:
        counts = collections.Counter()
        for path in files_below(directory):
            for row in translate(path, options.compile):
                counts["kernels" if row[1] else "files"] += 1
                counts["refused"] += bool(row[4])
                rows_all.append(row)
                if row[4]:
                    reasons[reason_of(row[4])].append("%s: %s" % (row[0], row[4]))
        print("%-44s %7d %8d %8d" % (directory, counts["files"], counts["kernels"], counts["refused"]))
    for reason, places in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print("%6d  %s" % (len(places), reason))
        for place in places[:SHOWN]:
            print("          " + place)
    print("slowest:")
    for row in sorted(rows_all, key=lambda row: -row[3])[:options.slow]:
        print("%9.3f s  %6d instructions  %s %s" % (row[3], row[2], row[0], row[1][:60]))
    return 0 if rows_all else 1


if __name__ == "__main__":
    sys.exit(main())
