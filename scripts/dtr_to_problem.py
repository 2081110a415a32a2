#!/usr/bin/env python3
"""Turns a log of the DTR prototype into the text form of a planning problem (policy/text.h).

usage: dtr_to_problem.py LOG[.gz] > PROBLEM

Accounting as in their simulator: constants are always resident; all outputs of an operator are rebuilt
together; a mutation makes a new version of the same size; a view shares the storage of its base; what is
still referenced at the end must be resident.
"""
import gzip
import json
import os
import sys
import zlib

MOST = 2 ** 64 - 1


class Malformed(Exception):
    """One line that names the place."""


def whole(row, field):
    """A number of bytes or nanoseconds."""
    value = int(row[field])
    if not 0 <= value <= MOST:
        raise ValueError(f"{field} is {value}")
    return value


def element(row, field, index):
    if not 0 <= index < len(row[field]):
        raise ValueError(f"{field} has no element {index}")
    return row[field][index]


class Log:
    def __init__(self):
        self.fixed = 0
        self.lines = []
        self.version_bytes = {}
        self.names = {}        # tensor name -> version number, None for a constant's storage
        self.references = {}   # tensor name -> count
        self.count = 0
        self.pending = None    # a CALL whose results are still being described

    def bind(self, name, version):
        self.names[name] = version
        self.references[name] = self.references.get(name, 0) + 1

    def new_version(self, size):
        version = self.count
        self.count += 1
        self.lines.append(["out", size, version])
        self.version_bytes[version] = size
        return version

    def operation(self, row):
        reads = []
        for name in row["ARGS"]:
            version = self.names[name]
            if version is not None and version not in reads:
                reads.append(version)
        name = "".join("_" if c.isspace() or not c.isprintable() else c for c in str(row["NAME"]))
        self.lines.append(["op", whole(row, "TIME"), name, reads])

    def constant_size(self, name, size):
        if name in self.constants:
            self.constants[name] = size

    def alias(self, row):
        alias = int(row["ALIAS"])
        if self.pending is None:
            raise ValueError("ALIAS before any CALL")
        if alias < 0:
            self.bind(row["NAME"], self.new_version(self.sizes[row["NAME"]]))
        else:
            self.bind(row["NAME"], self.names[element(self.pending, "ARGS", alias)])

    def mutate(self, row):
        self.operation(row)
        for k in row["MUTATE"]:
            name = element(row, "ARGS", int(k))
            old = self.names[name]
            size = self.sizes.get(name) if old is None else self.version_bytes[old]
            self.names[name] = self.new_version(size or 0)

    def line(self, row):
        kind = row["INSTRUCTION"]
        if kind == "CONSTANT":
            self.bind(row["NAME"], None)
            self.constants[row["NAME"]] = 0
        elif kind == "MEMORY":
            self.sizes[row["NAME"]] = whole(row, "MEMORY")
            self.constant_size(row["NAME"], self.sizes[row["NAME"]])
        elif kind == "CALL":
            self.operation(row)
            self.pending = row
        elif kind == "ALIAS":
            self.alias(row)
        elif kind == "MUTATE":
            self.mutate(row)
        elif kind == "COPY":
            self.bind(row["DST"], self.names[row["SRC"]])
            self.sizes[row["DST"]] = self.sizes.get(row["SRC"], 0)
        elif kind == "COPY_FROM":
            self.names[row["DST"]] = self.names[row["SRC"]]
            self.sizes[row["DST"]] = self.sizes.get(row["SRC"], 0)
        elif kind == "RELEASE":
            if row["NAME"] in self.references:
                self.references[row["NAME"]] -= 1
        elif kind != "ANNOTATE":
            raise ValueError(f"unknown instruction {kind}")

    def read(self, path):
        self.constants, self.sizes = {}, {}
        for number, row in rows_of(path):
            try:
                self.line(row)
            except KeyError as error:
                raise Malformed(f"{path}:{number}: unknown tensor or missing field {error}") from error
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                raise Malformed(f"{path}:{number}: {error}") from error
        self.fixed = sum(self.constants.values())
        if self.fixed > MOST:
            raise Malformed(f"{path}: the constants take {self.fixed} bytes")

    def write(self, out):
        kept = {self.names[n] for n, count in self.references.items() if count > 0}
        print("reprise-problem 1", file=out)
        print("fixed", self.fixed, file=out)
        for line in self.lines:
            if line[0] == "op":
                tail = " : " + " ".join(map(str, line[3])) if line[3] else ""
                print(f"op {line[1]} name={line[2]}{tail}", file=out)
            else:
                print(f"out {line[1]}{' kept' if line[2] in kept else ''}", file=out)
        print("end", file=out)


def rows_of(path):
    """Number and content of the lines behind ANNOTATE START."""
    opener = gzip.open if path.endswith(".gz") else open
    started, number = False, 0
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            for number, text in enumerate(stream, 1):
                row = json.loads(text)
                if not isinstance(row, dict):
                    raise ValueError("no object")
                if row.get("INSTRUCTION") == "ANNOTATE" and row.get("ANNOTATION") == "START":
                    started = True
                elif started:
                    yield number, row
    except UnicodeDecodeError as error:
        raise Malformed(f"{path}:{number + 1}: no text: {error.reason}") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}:{number}: not a line of JSON") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Malformed(f"{path}:{number}: damaged or cut off: {error}") from error
    if not started:
        raise Malformed(f"{path}: there is no line ANNOTATE START in it")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.split("\n\n")[1], file=sys.stdout if len(sys.argv) == 2 else sys.stderr)
        return 0 if len(sys.argv) == 2 else 2
    log = Log()
    try:
        log.read(sys.argv[1])
        log.write(sys.stdout)
        sys.stdout.flush()
    except Malformed as error:
        print(f"dtr_to_problem.py: {error}", file=sys.stderr)
    except OSError as error:
        where = error.filename or "standard output"
        print(f"dtr_to_problem.py: {where}: {error.strerror or error}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # what could not be written is not tried again
    else:
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main())
