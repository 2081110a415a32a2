-- Reprise: a recording as tables. Times are nanoseconds, sizes bytes, as they count against a cap.
-- The views at the end are the way in; `reprise report` prints the same figures.

-- One row: what was recorded.
CREATE TABLE run (
    program TEXT, device TEXT, process INTEGER,
    rank INTEGER,               -- among the processes of a job; NULL: not known
    device_bytes INTEGER, frame_bytes INTEGER,
    cap_bytes INTEGER,          -- NULL: none
    started_unix_ns INTEGER, end_ns INTEGER,
    is_cut INTEGER,             -- 1: the program was killed, or was still running
    lost_events INTEGER
);

-- Texts that other tables name by number.
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL);

-- The frames of each call stack, innermost first (depth 0). is_told: the frame that reports name.
CREATE TABLE frame (
    stack INTEGER, depth INTEGER, function TEXT, file TEXT, line INTEGER, module TEXT, is_told INTEGER,
    PRIMARY KEY (stack, depth)
) WITHOUT ROWID;

-- Two rows at most: 'run', the whole run by its events; 'iteration', the analysed iteration by its versions.
-- is_main: the one whose peak is reported.
CREATE TABLE stretch (
    name TEXT PRIMARY KEY, is_main INTEGER, positions INTEGER, peak_position INTEGER, peak_ns INTEGER, peak_bytes INTEGER,
    end_ns INTEGER
);

-- Bytes that were held from one position to another: in 'run' an allocation, in 'iteration' a version.
CREATE TABLE span (
    id INTEGER PRIMARY KEY,
    stretch TEXT, bytes INTEGER, born INTEGER, ends INTEGER, born_ns INTEGER, ends_ns INTEGER,
    kind TEXT,                  -- weights, activations, ...
    name INTEGER,               -- text: what made it
    place INTEGER,              -- text: from where
    stack INTEGER,
    allocation INTEGER,         -- allocation.id; NULL: not known
    reads INTEGER,              -- operations that read it
    may TEXT,                   -- recompute, swap, hold: what a plan may do with it
    reason INTEGER,             -- text: why it is not recomputed
    is_at_peak INTEGER
);

-- Everything that the program asked for. freed_ns NULL: still held at the end.
CREATE TABLE allocation (
    id INTEGER PRIMARY KEY, address INTEGER, bytes INTEGER, footprint_bytes INTEGER, held_ns INTEGER, freed_ns INTEGER,
    source TEXT,                -- arena, slab, outside, own
    what TEXT, kind TEXT, thread INTEGER, stack INTEGER
);

-- Launches, copies and sets in the order of submission. nanoseconds 0: not measured.
CREATE TABLE operation (
    id INTEGER PRIMARY KEY, number INTEGER, start_ns INTEGER, nanoseconds INTEGER, kind TEXT,
    name INTEGER, place INTEGER, stream INTEGER, thread INTEGER, stack INTEGER, moved_bytes INTEGER, is_replay INTEGER
);

-- Which operation touched which allocation. access: sum of 1 may read, 2 may write, 4 these are facts, 8 overwrites
-- all of it, 16 through a pointer in memory.
CREATE TABLE touch (operation INTEGER, allocation INTEGER, access INTEGER);

CREATE TABLE iteration (
    number INTEGER, phase TEXT, start_ns INTEGER, end_ns INTEGER, peak_bytes INTEGER, operations INTEGER, replays INTEGER,
    replayed_ns INTEGER,        -- measured, or by the mean of what ran under the same name
    swapped_out_bytes INTEGER, swapped_in_bytes INTEGER, is_analysed INTEGER
);

-- What Reprise did with allocations.
CREATE TABLE movement (ns INTEGER, movement TEXT, allocation INTEGER, bytes INTEGER);

-- What the job took of the device, whenever it changed.
CREATE TABLE resident (ns INTEGER, frames_bytes INTEGER, outside_bytes INTEGER, demand_bytes INTEGER);

-- Held at the peak, by what made it and where.
CREATE VIEW peak_by_site AS
    SELECT n.text AS name, p.text AS place, count(*) AS pieces, sum(s.bytes) AS bytes,
           sum(s.bytes) * 1.0 / t.peak_bytes AS share
    FROM span s JOIN stretch t ON t.name = s.stretch AND t.is_main
    JOIN text n ON n.id = s.name JOIN text p ON p.id = s.place
    WHERE s.is_at_peak GROUP BY s.name, s.place ORDER BY bytes DESC;

-- Held at the peak, by kind.
CREATE VIEW peak_by_kind AS
    SELECT s.kind, count(*) AS pieces, sum(s.bytes) AS bytes, sum(s.bytes) * 1.0 / t.peak_bytes AS share
    FROM span s JOIN stretch t ON t.name = s.stretch AND t.is_main
    WHERE s.is_at_peak GROUP BY s.kind ORDER BY bytes DESC;

-- Everything that lived, longest x largest first.
CREATE VIEW lifetimes AS
    SELECT s.stretch, n.text AS name, p.text AS place, s.kind, s.bytes, s.born_ns, s.ends_ns,
           s.ends_ns - s.born_ns AS life_ns, s.bytes * 1e-9 * (s.ends_ns - s.born_ns) AS byte_seconds, s.reads, s.may,
           r.text AS reason, s.stack, s.is_at_peak
    FROM span s JOIN text n ON n.id = s.name JOIN text p ON p.id = s.place JOIN text r ON r.id = s.reason
    ORDER BY byte_seconds DESC;

-- What cannot be recomputed of the analysed iteration's peak, and why.
CREATE VIEW not_recomputable AS
    SELECT r.text AS reason, s.may, count(*) AS pieces, sum(s.bytes) AS bytes
    FROM span s JOIN text r ON r.id = s.reason
    WHERE s.stretch = 'iteration' AND s.is_at_peak AND s.may <> 'recompute'
    GROUP BY s.reason, s.may ORDER BY bytes DESC;

-- Iterations with their times.
CREATE VIEW iterations AS
    SELECT number, phase, end_ns - start_ns AS ns, peak_bytes, operations, replays, replayed_ns, swapped_out_bytes,
           swapped_in_bytes, is_analysed
    FROM iteration ORDER BY start_ns;

-- Where the time on the device goes.
CREATE VIEW time_by_name AS
    SELECT t.text AS name, o.kind, count(*) AS runs, sum(o.is_replay) AS replays, sum(o.nanoseconds) AS ns
    FROM operation o JOIN text t ON t.id = o.name GROUP BY o.name, o.kind ORDER BY ns DESC;
