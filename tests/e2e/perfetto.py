#!/usr/bin/env python3
"""The trace that `reprise report --perfetto` writes, against Perfetto's published format (package perfetto of PyPI).

Every message is read with Perfetto's own descriptors and may hold no field that these do not know; then what was meant
is looked for. Perfetto's trace processor itself is used as well where it is at hand (TRACE_PROCESSOR_SHELL, or
trace_processor_shell in the PATH): PyPI's package only downloads it.
Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`. Without the package it skips, unless --must is given: then it is
brought into $BUILD/perfetto.

usage: perfetto.py [--must]
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PLACE = os.path.join(BUILD, "perfetto")
VERSION = "perfetto==0.59.1"


def bring_package():
    """True if the package is there."""
    for folder in glob.glob(os.path.join(PLACE, "lib", "python3*", "site-packages")):
        sys.path.insert(0, folder)
    try:
        import google.protobuf  # noqa: F401 pylint: disable=unused-import,import-outside-toplevel
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: F401 pylint: disable=all
        return True
    except ImportError:
        if "--must" not in sys.argv or os.path.isdir(PLACE):
            return False
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    subprocess.run([os.path.join(PLACE, "bin", "pip"), "install", "-q", VERSION, "protobuf"], check=True)
    return bring_package()


def unknown_fields(message):
    from google.protobuf.unknown_fields import UnknownFieldSet  # pylint: disable=import-outside-toplevel
    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
            found += unknown_fields(one)
    return found


class Written:
    """The packets of one trace, sorted out."""

    def __init__(self, path):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as format  # pylint: disable=all
        self.trace = format.Trace()
        with open(path, "rb") as file:
            self.trace.ParseFromString(file.read())
        self.event = format.TrackEvent
        self.packets = self.trace.packet
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")}
        self.events = [p for p in self.packets if p.HasField("track_event")]
        self.names = {n.iid: n.name for p in self.packets for n in p.interned_data.event_names}

    def track(self, name):
        return next(uuid for uuid, track in self.tracks.items() if track.name == name)

    def on(self, uuid):
        return [p for p in self.events if p.track_event.track_uuid == uuid]


def check_format(written):
    assert len(written.packets) > 1000
    found = unknown_fields(written.trace)
    assert found == 0, f"{found} fields that Perfetto does not know"
    assert written.packets[0].sequence_flags & 1, "the sequence does not begin with a cleared state"
    assert len({p.trusted_packet_sequence_id for p in written.packets}) == 1


def check_tracks(written):
    process = [track for track in written.tracks.values() if track.HasField("process")]
    assert len(process) == 1 and process[0].process.process_name
    for track in written.tracks.values():
        assert track.HasField("process") or track.parent_uuid == process[0].uuid, track.name
    for packet in written.events:
        assert packet.track_event.track_uuid in written.tracks, "an event on a track that is not described"
    for name in ("held by the program", "frames taken", "cap", "iterations", "phases"):
        assert written.on(written.track(name)), f"nothing on {name}"


def check_counters(written, database):
    held = [p.track_event.counter_value for p in written.on(written.track("held by the program"))]
    peak = database("SELECT peak_bytes FROM stretch WHERE name = 'run'")
    assert max(held) == peak, f"{max(held)} instead of {peak}"
    unit = written.tracks[written.track("held by the program")].counter.unit
    assert unit == 3, "the unit is not bytes"
    frames = [p.track_event.counter_value for p in written.on(written.track("frames taken"))]
    assert max(frames) == database("SELECT max(frames_bytes) FROM resident")


def check_slices(written, database):
    """On each track every slice ends, none crosses another, time never goes back."""
    begun = 0
    for uuid, track in written.tracks.items():
        depth, now = 0, 0
        for packet in written.on(uuid):
            kind = packet.track_event.type
            if kind == written.event.TYPE_COUNTER:
                continue
            assert packet.timestamp >= now, f"{track.name} goes back"
            now = packet.timestamp
            depth += (kind == written.event.TYPE_SLICE_BEGIN) - (kind == written.event.TYPE_SLICE_END)
            assert 0 <= depth <= 1, f"{track.name}: slices cross"
            if kind in (written.event.TYPE_SLICE_BEGIN, written.event.TYPE_INSTANT) and track.name.startswith("stream"):
                assert written.names[packet.track_event.name_iid], "a slice without a name"
                begun += 1
        assert depth == 0, f"{track.name}: a slice does not end"
    assert begun == database("SELECT count(*) FROM operation"), f"{begun} operations"


def check_flows(written):
    begins = {flow: p.timestamp for p in written.events for flow in p.track_event.flow_ids}
    ends = {flow: p.timestamp for p in written.events for flow in p.track_event.terminating_flow_ids}
    assert len(begins) > 100, f"{len(begins)} flows"
    assert begins.keys() == ends.keys(), "a flow with one end"
    assert all(begins[flow] <= ends[flow] for flow in begins), "a flow against time"


def check_processor(path, written):
    shell = os.environ.get("TRACE_PROCESSOR_SHELL") or shutil.which("trace_processor_shell")
    if not shell:
        return "Perfetto's trace processor is not at hand"
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig  # pylint: disable=all
    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shell)) as processor:
        rows = list(processor.query("SELECT count(*) AS n FROM flow"))
        assert rows[0].n == len({f for p in written.events for f in p.track_event.flow_ids})
        errors = list(processor.query("SELECT name, value FROM stats WHERE severity = 'error' AND value > 0"))
        assert not errors, [(row.name, row.value) for row in errors]
    return None


def main():
    if not bring_package():
        print(f"skip perfetto: no package {VERSION} here (make check-perfetto brings it)")
        return
    import sqlite3  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        trace, out, tables = (os.path.join(folder, name) for name in ("run.trace", "run.pftrace", "run.db"))
        subprocess.run([os.path.join(BUILD, "bench", "make_trace"), trace, "20000"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join(BUILD, "reprise-trace"), "report", trace, "--perfetto", out, "--sqlite", tables],
                       check=True, stdout=subprocess.DEVNULL)
        connection = sqlite3.connect(tables)
        database = lambda query: connection.execute(query).fetchone()[0]
        written = Written(out)
        for name, check in (("published format", lambda: check_format(written)), ("tracks", lambda: check_tracks(written)),
                            ("counters", lambda: check_counters(written, database)),
                            ("slices", lambda: check_slices(written, database)), ("flows", lambda: check_flows(written)),
                            ("trace processor", lambda: check_processor(out, written))):
            try:
                why = check()
                print(f"skip perfetto: {name}: {why}" if why else f"ok perfetto: {name}")
            except (AssertionError, KeyError, StopIteration) as fault:
                print(f"not ok perfetto: {name}: {fault}".replace("\n", " "))
        connection.close()


main()
