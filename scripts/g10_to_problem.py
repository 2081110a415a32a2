#!/usr/bin/env python3
"""Turns a pair of G10 tables (NAME.kernels.tsv, NAME.tensors.tsv) into the text form of a planning problem
(policy/text.h).

usage: g10_to_problem.py NAME.kernels.tsv [GB_PER_SECOND] > PROBLEM

Persistent tensors are there at the start and must be there at the end. A tensor that a kernel both reads and
writes becomes a new version in place, from which the kernel's other outputs are taken not to depend (running
statistics); one that is written without being read is made anew. With a bandwidth, every tensor may be swapped,
at that rate in each direction, and what is there at the start may start (and then ends) on the host.
"""
import sys


def rows_of(path):
    with open(path) as stream:
        heading = stream.readline().rstrip("\n").split("\t")
        for number, line in enumerate(stream, 2):
            fields = line.rstrip("\n").split("\t")
            if len(fields) != len(heading):
                sys.exit(f"{path}:{number}: {len(fields)} fields, {len(heading)} expected")
            yield fields


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def read_tensors(path):
    return {int(tensor): (persistent == "1", int(size)) for tensor, persistent, size in rows_of(path)}


def make_lines(kernels, tensors, swappable):
    """One row per line: [text, is kept]. Versions are numbered in the order of their lines."""
    flag, host = (" swappable", " host") if swappable else ("", "")
    current, rows, rows_of_tensor, first_is_read = {}, [], {}, {}
    for _, _, _, reads, writes in kernels:
        for tensor in reads + writes:
            first_is_read.setdefault(tensor, tensor in reads)

    def add_version(tensor, text):
        current[tensor] = len(current_of)
        current_of.append(tensor)
        if tensors[tensor][0] and tensor in rows_of_tensor:
            rows_of_tensor[tensor][1] = False  # only the last version of a persistent tensor is kept
        rows_of_tensor[tensor] = [text, tensors[tensor][0]]
        rows.append(rows_of_tensor[tensor])

    current_of = []
    for tensor in sorted(first_is_read):
        if tensors[tensor][0] or first_is_read[tensor]:
            add_version(tensor, f"in {tensors[tensor][1]}{flag}{host}")
    for name, nanoseconds, workspace, reads, writes in kernels:
        inputs = " ".join(str(current[tensor]) for tensor in dict.fromkeys(reads) if tensor not in writes)
        rows.append([f"op {nanoseconds} workspace={workspace} name={name}" + (f" : {inputs}" if inputs else ""), False])
        for tensor in dict.fromkeys(writes):
            replaced = f" replaces={current[tensor]}" if tensor in reads else ""
            add_version(tensor, f"out {tensors[tensor][1]}{flag}{replaced}")
    return [text + (" kept" if is_kept else "") for text, is_kept in rows]


def main():
    if len(sys.argv) not in (2, 3) or not sys.argv[1].endswith(".kernels.tsv"):
        sys.exit(__doc__.split("\n\n")[1])
    path = sys.argv[1]
    try:
        tensors = read_tensors(path.replace(".kernels.tsv", ".tensors.tsv"))
        kernels = [(row[1], round(float(row[2]) * 1000), int(row[3]), numbers(row[4]), numbers(row[5]))
                   for row in rows_of(path)]
        bandwidth = float(sys.argv[2]) if len(sys.argv) == 3 else 0
        lines = make_lines(kernels, tensors, bandwidth > 0)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except (ValueError, KeyError) as error:
        sys.exit(f"{path}: malformed: {error}")
    print("reprise-problem 1")
    if bandwidth:
        print(f"bandwidth {bandwidth} {bandwidth}")
    print("\n".join([*lines, "end"]))


if __name__ == "__main__":
    main()
