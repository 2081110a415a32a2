#!/usr/bin/env python3
"""What `reprise report` says of a real run, in all its forms, and how it behaves: tests/apps/gpt on the CPU device.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` per check.
"""
import fcntl
import json
import os
import pty
import re
import resource
import sqlite3
import struct
import subprocess
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
REPRISE = os.path.join(ROOT, "scripts", "reprise")
TRACE = os.path.join(BUILD, "reprise-trace")
# For 1,000,000 records: 5 s, 10 s, 1 GiB. This is a tenth of them, on cores that others use too.
RECORDS, REPORT_SECONDS, PAGE_SECONDS, MOST_BYTES = 100_000, 1.5, 5.0, 256 << 20


def run(*arguments, **more):
    return subprocess.run([TRACE, *arguments], capture_output=True, text=True, check=False, **more)


def size(count):
    """As the report writes it."""
    value, unit = float(count), 0
    while value >= 1024 and unit < 4:
        value /= 1024
        unit += 1
    return f"{value:.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}" if unit else f"{count} B"


class Fixture:
    """One recorded run of gpt, reported in every form."""

    def __init__(self, folder):
        self.folder = folder
        self.trace = self.path("gpt.trace")
        stats = self.path("stats")
        environment = dict(os.environ, CPUDEV_MEMORY=str(4 << 30), CPUDEV_STATS=stats, REPRISE_LIBRARY=os.path.join(BUILD, "libreprise.so"))
        done = subprocess.run([REPRISE, "record", "-o", self.trace, "--device", "cpu", "--",
                               os.path.join(ROOT, "build", "apps", "gpt"), "--iters", "4"],
                              env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        with open(stats, encoding="utf-8") as file:
            self.device_peak = json.load(file)["peak_bytes"]
        self.html, self.database, self.perfetto = self.path("gpt.html"), self.path("gpt.db"), self.path("gpt.pftrace")
        done = run("report", self.trace, "--html", self.html, "--sqlite", self.database, "--perfetto", self.perfetto)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        self.page = done.stdout

    def path(self, name):
        return os.path.join(self.folder, name)

    def ask(self, query):
        with sqlite3.connect(self.database) as database:
            return database.execute(query).fetchall()


def check_attention(fixture):
    """The attention matrices take most of the memory that single tensors take, from the line that launches them."""
    longest = fixture.page.split("Longest-lived activations")[1].splitlines()[1]
    match = re.match(r"\s+softmax_forward_kernel\s+(attention\.cu):(\d+)\s", longest)
    assert match, longest
    with open(os.path.join(ROOT, "tests", "apps", match[1]), encoding="utf-8") as file:
        line = file.read().splitlines()[int(match[2]) - 1]
    assert "softmax_forward_kernel" in line, f"{match[1]}:{match[2]} is: {line}"
    sites = fixture.page.split("by what made it")[1]
    assert re.search(r"softmax_forward_kernel +\d+ .*\n    at attention\.cu:\d+ causal_softmax_forward < attend", sites), sites


def check_sums(fixture):
    """Held at the peak + what is listed beside it = the device's own high-water mark."""
    held = fixture.ask("SELECT peak_bytes FROM stretch WHERE is_main")[0][0]
    taken = fixture.ask("SELECT max(frames_bytes + outside_bytes) FROM resident")[0][0]
    assert taken == fixture.device_peak, f"recorded {taken}, the device says {fixture.device_peak}"
    line = f"On the device at most {size(taken)}: {size(held)} held + {size(taken - held)} partly used or free"
    assert line in fixture.page, f"no line: {line}"
    assert taken - held < 0.1 * taken, "more than a tenth is not explained by what is held"


def check_sqlite(fixture):
    """The tables, the views and the page of text say the same."""
    peak = fixture.ask("SELECT peak_bytes FROM stretch WHERE is_main")[0][0]
    for view in ("peak_by_site", "peak_by_kind"):
        assert fixture.ask(f"SELECT sum(bytes) FROM {view}")[0][0] == peak, view
        assert abs(fixture.ask(f"SELECT sum(share) FROM {view}")[0][0] - 1) < 1e-9, view
    assert f"Peak {size(peak)} at" in fixture.page
    for kind, pieces, amount, _ in fixture.ask("SELECT * FROM peak_by_kind"):
        assert re.search(rf"  {re.escape(kind)} +{re.escape(size(amount))} +\d+\.\d % +{pieces} piece", fixture.page), kind
    for name, _, pieces, amount, _ in fixture.ask("SELECT * FROM peak_by_site LIMIT 4"):
        assert re.search(rf"  {re.escape(name[:30])}\S* +{pieces} +{re.escape(size(amount))} ", fixture.page), name
    position = fixture.ask("SELECT peak_position FROM stretch WHERE name = 'run'")[0][0]
    alive = fixture.ask(f"SELECT sum(bytes) FROM span WHERE stretch = 'run' AND born <= {position} AND ends > {position}")
    assert alive[0][0] == peak
    assert fixture.ask("SELECT count(*) FROM iterations")[0][0] >= 2
    assert fixture.ask("SELECT count(*) FROM lifetimes WHERE kind = 'activations' AND life_ns > 0")[0][0] > 100
    assert fixture.ask("PRAGMA integrity_check")[0][0] == "ok"


def check_manual(fixture):
    """The query of the man page runs as it stands there."""
    with open(os.path.join(ROOT, "scripts", "reprise.1"), encoding="utf-8") as file:
        query = re.search(r'sqlite3 -box run.db "\n(.*?)"\n', file.read(), re.S)[1]
    rows = fixture.ask(query)
    assert len(rows) == 10 and rows[0][4] >= rows[-1][4] and "matmul" in str(rows), rows


def check_html(fixture):
    """One file that asks nobody for anything."""
    with open(fixture.html, encoding="utf-8") as file:
        page = file.read()
    assert "default-src 'none'" in page
    outside = re.findall(r'(?:src|href|action)\s*=\s*["\']?(?!#|data:)[^"\'> ]+', page.split('<script type="application/json"')[0])
    assert not outside, outside
    data = json.loads(re.search(r'id="data">\n(.*?)\n</script>', page, re.S)[1])
    run_view = next(view for view in data["views"] if view["id"] == "run")
    assert run_view["peakBytes"] == fixture.ask("SELECT peak_bytes FROM stretch WHERE name = 'run'")[0][0]
    assert sum(run_view["kindBytes"]) == run_view["peakBytes"]
    assert data["curve"] and len(data["curve"]["points"]) > 5
    ratios = [point[1] for point in data["curve"]["points"] if point[1] > 0]
    assert ratios == sorted(ratios, reverse=True), "more memory costs more time"


def in_terminal(arguments, rows, columns, **variables):
    """What a terminal of this size gets: both streams together."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    environment.update(TERM="xterm", LC_ALL="C.UTF-8", **variables)
    process = subprocess.Popen([TRACE, *arguments], stdout=follower, stderr=follower, stdin=follower, env=environment)
    os.close(follower)
    said = b""
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(leader)
    assert process.wait() == 0
    return said.decode()


def check_terminal(fixture):
    """Fits; colours and progress on a terminal only; NO_COLOR is honoured."""
    for rows, columns in ((24, 80), (30, 100), (50, 80), (60, 200)):
        said = in_terminal(["report", fixture.trace], rows, columns)
        assert "\x1b[1m" in said and "reprise: reading" in said
        page = said.split("\x1b[K")[-1]
        lines = re.sub(r"\x1b\[[0-9]*m", "", page).replace("\r", "").splitlines()
        assert len(lines) < rows, f"{len(lines)} lines on {rows}"
        assert max(map(len, lines)) <= columns, f"{max(map(len, lines))} columns on {columns}"
        for part in ("Peak", "by kind", "by what made it", "Longest-lived", "Iterations", "Recomputable"):
            assert part in page, f"{part} is missing on {rows} rows"
    assert not re.search(r"\x1b\[[0-9]*m", in_terminal(["report", fixture.trace], 50, 80, NO_COLOR="1"))
    piped = run("report", fixture.trace)
    assert "\x1b" not in piped.stdout and piped.stderr == ""


def refused(*arguments):
    done = run("report", *arguments)
    assert done.returncode == 2, f"{arguments}: exit {done.returncode}"
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("reprise: "), done.stderr
    assert done.stdout == "", "it was refused and printed something all the same"
    return done.stderr


def check_files(fixture):
    """Whole or not at all; only regular files are replaced; nothing is left behind."""
    with open(fixture.trace, "rb") as file:
        whole = file.read()
    cut, bad, new, foreign = (fixture.path(name) for name in ("cut", "bad", "new", "foreign"))
    for path, content in ((cut, whole[:len(whole) * 6 // 10]), (bad, whole[:5000] + b"\xff" + whole[5001:]),
                          (new, whole[:8] + struct.pack("<I", 99) + whole[12:]), (foreign, b"%PDF-1.4 nothing")):
        with open(path, "wb") as file:
            file.write(content)
    done = run("report", cut, "--html", fixture.path("cut.html"))
    assert done.returncode == 0 and "was cut off" in done.stdout, done.stderr
    assert "damaged" in refused(bad)
    assert "newer" in refused(new)
    assert "not a trace" in refused(foreign)
    assert "not a regular file" in refused(fixture.trace, "--html", fixture.folder)
    fifo = fixture.path("fifo")
    os.mkfifo(fifo)
    assert "not a regular file" in refused(fixture.trace, "--sqlite", fifo)
    refused(fixture.trace, "--html", fixture.path("no/such/folder"))
    refused(fixture.trace, "--pdf", "x")
    old = fixture.path("old")
    with open(old, "w", encoding="utf-8") as file:
        file.write("before")
    assert run("report", fixture.trace, "--perfetto", old).returncode == 0
    with open(old, "rb") as file:
        assert file.read(6) != b"before"
    left = [name for name in os.listdir(fixture.folder) if re.search(r"\.[A-Za-z0-9]{6}$", name) and "pftrace" not in name]
    assert left in ([], ["gpt.pftrace"]), left
    full = run("report", fixture.trace, "--html", "/dev/full")
    assert full.returncode == 2
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([TRACE, "report", fixture.trace], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "could not be written" in done.stderr, done.stderr


def check_names(fixture):
    """Names that are markup, commands to a terminal and no UTF-8 do nothing in any form."""
    trace, page, tables = (fixture.path("hostile." + end) for end in ("trace", "html", "db"))
    subprocess.run([os.path.join(BUILD, "bench", "make_trace"), trace, "3000", "1", "hostile"], check=True, stdout=subprocess.DEVNULL)
    done = run("report", trace, "--html", page, "--sqlite", tables, env=dict(os.environ, LC_ALL="C.UTF-8"))
    assert done.returncode == 0, done.stderr
    assert "</script>" in done.stdout and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)
    with open(page, encoding="utf-8") as file:
        markup = file.read()
    assert markup.count("</script>") == 2 and "<img" not in markup, "a name ended the page's data"
    with sqlite3.connect(tables) as database:
        names = [row[0] for row in database.execute("SELECT text FROM text")]
    assert any("</script><img" in name for name in names)


def cost(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(["python3", "-c", "import os, resource, subprocess, sys\n"
                           "r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(r)",
                           TRACE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - begun, int(done.stdout)


def check_cost(fixture):
    """Time and memory for many records (the million: make bench)."""
    maker = os.path.join(BUILD, "bench", "make_trace")
    if not os.path.exists(maker):
        return "make_trace is not built"
    trace = fixture.path("long.trace")
    subprocess.run([maker, trace, str(RECORDS)], check=True, stdout=subprocess.DEVNULL)
    for arguments, most in ((["report", trace], REPORT_SECONDS), (["report", trace, "--html", fixture.path("long.html")], PAGE_SECONDS)):
        seconds, _, memory = cost(*arguments)
        assert seconds < most, f"{' '.join(arguments)}: {seconds:.1f} s of the processor"
        assert memory < MOST_BYTES, f"{' '.join(arguments)}: {memory >> 20} MiB"
    return None


CHECKS = [check_attention, check_sums, check_sqlite, check_manual, check_html, check_terminal, check_files, check_names,
          check_cost]


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            fixture = Fixture(folder)
        except (AssertionError, OSError, subprocess.SubprocessError) as fault:
            print(f"not ok report: a recording of gpt: {fault}".replace("\n", " "))
            return
        for check in CHECKS:
            name = "report: " + check.__name__.removeprefix("check_")
            try:
                why = check(fixture)
                print(f"skip {name}: {why}" if why else f"ok {name}")
            except (AssertionError, OSError, sqlite3.Error, KeyError, TypeError, IndexError) as fault:
                print(f"not ok {name}: {fault}".replace("\n", " "))


main()
