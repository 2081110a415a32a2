#!/usr/bin/env python3
"""Turns a log of the DTR prototype into the text form of a planning problem (policy/text.h).

usage: dtr_to_problem.py LOG[.gz] > PROBLEM

Accounting as in their simulator: constants are always resident; all outputs of an operator are rebuilt
together; a mutation makes a new version of the same size; a view shares the storage of its base; what is
still referenced at the end must be resident.
"""
import gzip
import json
import sys


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
        self.lines.append(["op", int(row["TIME"]), row["NAME"], reads])

    def constant_size(self, name, size):
        if name in self.constants:
            self.constants[name] = size

    def read(self, rows):
        self.constants = {}
        sizes = {}
        for row in rows:
            kind = row["INSTRUCTION"]
            if kind == "CONSTANT":
                self.bind(row["NAME"], None)
                self.constants[row["NAME"]] = 0
            elif kind == "MEMORY":
                sizes[row["NAME"]] = int(row["MEMORY"])
                self.constant_size(row["NAME"], int(row["MEMORY"]))
            elif kind == "CALL":
                self.operation(row)
                self.pending = row
            elif kind == "ALIAS":
                alias = int(row["ALIAS"])
                if alias < 0:
                    self.bind(row["NAME"], self.new_version(sizes[row["NAME"]]))
                else:
                    self.bind(row["NAME"], self.names[self.pending["ARGS"][alias]])
            elif kind == "MUTATE":
                self.operation(row)
                for k in row["MUTATE"]:
                    name = row["ARGS"][k]
                    old = self.names[name]
                    size = sizes.get(name) if old is None else self.version_bytes[old]
                    self.names[name] = self.new_version(size or 0)
            elif kind == "COPY":
                self.bind(row["DST"], self.names[row["SRC"]])
                sizes[row["DST"]] = sizes.get(row["SRC"], 0)
            elif kind == "COPY_FROM":
                self.names[row["DST"]] = self.names[row["SRC"]]
                sizes[row["DST"]] = sizes.get(row["SRC"], 0)
            elif kind == "RELEASE":
                if row["NAME"] in self.references:
                    self.references[row["NAME"]] -= 1
        self.fixed = sum(self.constants.values())

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
    opener = gzip.open if path.endswith(".gz") else open
    started = False
    with opener(path, "rt") as stream:
        for number, text in enumerate(stream, 1):
            try:
                row = json.loads(text)
            except ValueError:
                sys.exit(f"{path}:{number}: not a line of JSON")
            if row.get("INSTRUCTION") == "ANNOTATE" and row.get("ANNOTATION") == "START":
                started = True
            elif started:
                yield row


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    log = Log()
    try:
        log.read(rows_of(sys.argv[1]))
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}")
    except KeyError as error:
        sys.exit(f"{sys.argv[1]}: unknown tensor or missing field {error}")
    log.write(sys.stdout)


if __name__ == "__main__":
    main()
