#!/usr/bin/env python3
"""Turns a pair of G10 tables (NAME.kernels.tsv, NAME.tensors.tsv) into the text form of a planning problem
(policy/text.h).

usage: g10_to_problem.py NAME.kernels.tsv [GB_PER_SECOND] > PROBLEM

Persistent tensors are there at the start and must be there at the end. A tensor that a kernel both reads and
writes becomes a new version in place, from which the kernel's other outputs are taken not to depend (running
statistics); one that is written without being read is made anew. With a bandwidth, every tensor may be swapped,
at that rate in each direction, and what is there at the start may start (and then ends) on the host.
"""
import math
import os
import sys

KERNEL_FIELDS, TENSOR_FIELDS = 6, 3
MOST = 2 ** 64 - 1


class Malformed(Exception):
    """One line that names the place."""


def rows_of(path, width, read):
    """read(fields) of each line behind the heading."""
    rows, number = [], 1
    try:
        with open(path, encoding="utf-8") as stream:
            if len(stream.readline().rstrip("\n").split("\t")) != width:
                raise ValueError(f"no heading of {width} fields")
            for number, line in enumerate(stream, 2):
                fields = line.rstrip("\n").split("\t")
                if len(fields) != width:
                    raise ValueError(f"{len(fields)} fields, {width} expected")
                rows.append(read(fields))
    except UnicodeDecodeError as error:
        raise Malformed(f"{path}:{number + 1}: no text: {error.reason}") from error
    except (ValueError, OverflowError) as error:
        raise Malformed(f"{path}:{number}: {error}") from error
    return rows


def whole(text):
    """A number of bytes, or that of a tensor."""
    value = int(text)
    if not 0 <= value <= MOST:
        raise ValueError(f"{value} is out of range")
    return value


def nanoseconds_of(text):
    value = float(text) * 1000
    if not 0 <= value <= MOST:
        raise ValueError(f"{text} is no duration")
    return round(value)


def numbers(text, tensors):
    found = [whole(word) for word in text.split(",") if word]
    for tensor in found:
        if tensor not in tensors:
            raise ValueError(f"there is no tensor {tensor}")
    return found


def read_tensors(path):
    rows = rows_of(path, TENSOR_FIELDS, lambda fields: (whole(fields[0]), (fields[1] == "1", whole(fields[2]))))
    return dict(rows)


def read_kernels(path, tensors):
    return rows_of(path, KERNEL_FIELDS,
                   lambda fields: ("_".join(fields[1].split()), nanoseconds_of(fields[2]), whole(fields[3]),
                                   numbers(fields[4], tensors), numbers(fields[5], tensors)))


def bandwidth_of(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e12:
        raise Malformed(f"{text} is no bandwidth")
    return value


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


def convert(path, bandwidth):
    tensors = read_tensors(path.replace(".kernels.tsv", ".tensors.tsv"))
    lines = make_lines(read_kernels(path, tensors), tensors, bandwidth > 0)
    print("reprise-problem 1")
    if bandwidth:
        print(f"bandwidth {bandwidth} {bandwidth}")
    print("\n".join([*lines, "end"]), flush=True)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        is_asked = len(sys.argv) == 2
        print(__doc__.split("\n\n")[1], file=sys.stdout if is_asked else sys.stderr)
        return 0 if is_asked else 2
    try:
        if not sys.argv[1].endswith(".kernels.tsv"):
            raise Malformed(f"{sys.argv[1]}: its name should end in .kernels.tsv")
        convert(sys.argv[1], bandwidth_of(sys.argv[2]) if len(sys.argv) == 3 else 0)
    except Malformed as error:
        print(f"g10_to_problem.py: {error}", file=sys.stderr)
    except OSError as error:
        where = error.filename or "standard output"
        print(f"g10_to_problem.py: {where}: {error.strerror or error}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # what could not be written is not tried again
    else:
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main())
