"""What is asked and what is seen: one line per demand where it is met with, and all of them again at the end."""
import shutil
import time

verdicts = []  # (status, section, asked, seen)
began = time.monotonic()


def say(status, section, asked, seen):
    """`ok`, `not ok` or `skip`."""
    verdicts.append((status, section, asked, seen))
    print(f"{status} {section} {asked}: {seen}", flush=True)


def judge(is_met, section, asked, seen):
    say("ok" if is_met else "not ok", section, asked, seen)


def title(section, name, *lines):
    """A section's heading; the lines say what is looked at and how."""
    print(f"\n== {section} {name}  [{time.monotonic() - began:.0f} s]", *lines, sep="\n", flush=True)


def columns(rows):
    """Aligned, the first row being the heading."""
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [str(cell).ljust(width) if k == 0 else str(cell).rjust(width)
                 for k, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip(), flush=True)


def summary():
    """True where nothing that was asked is unmet."""
    width = max(shutil.get_terminal_size((120, 24)).columns, 80)
    print(f"\n== What was asked, and what was seen  [{time.monotonic() - began:.0f} s]")
    for status, section, asked, seen in verdicts:
        line = f"{status:<6} {section} {asked}: "
        print(line + seen if len(line) + len(seen) <= width else f"{line.rstrip()}\n         {seen}")
    count = {status: sum(verdict[0] == status for verdict in verdicts) for status in ("ok", "not ok", "skip")}
    print(f"{count['ok']} met, {count['not ok']} not met, {count['skip']} skipped")
    return not count["not ok"]
