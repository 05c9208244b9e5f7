"""The hosts of a job compared: in words, as bars, and as tables."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis import PARTS, HostRow, Hosts
from tfdoctor.report import words
from tfdoctor.report.tables import Grid, grid
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, time_span
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell

NAMED = 4  # Hosts that a cell names; the JSON report has all


def sorted_rows(hosts: Hosts) -> list[HostRow]:
    """Return the hosts by own work, most first."""
    return sorted(hosts.rows, key=lambda row: (-row.own_ms if is_known(row.own_ms) else 1.0, bool(row.missing)))


def brief(row: HostRow) -> tuple[str, str, str]:
    """Return the name of a host, its step, and what else a line has room for."""
    if row.missing:
        return text.name(row.name), "", text.prose(row.missing)
    parts = words.parts_of(row.breakdown_ms)
    part, time = max(parts, key=lambda part: part[1], default=("unknown", 0.0))
    largest = f"largest part: {words.PART_LABELS[part]}, {milliseconds(time)}"
    return text.name(row.name), milliseconds(row.median_ms), f"own work {milliseconds(row.own_ms)}; {largest}"


def verdict(hosts: Hosts) -> str:
    """Say which host the verdict is about, and what its savings mean for the job."""
    shown = f"The steps shown are those of {text.name(hosts.shown)}, one of {counted(len(hosts.rows), 'host')}."
    if not hosts.straggler:
        return f"{shown} The job gains only what all hosts save."
    return (
        f"{shown} The other hosts wait for its {milliseconds(hosts.lag_ms)} of extra work. The job gains at most "
        f"{milliseconds(hosts.gain_ms)} per step from changes to this host alone."
    )


def notes(hosts: Hosts) -> Iterator[str]:
    """Yield which host is shown, which steps were compared, and how far apart the clocks and the hosts are."""
    yield f"This report shows {text.name(hosts.shown)} in full: {text.prose(hosts.why_shown)}."
    if hosts.matched:
        steps = counted(hosts.matched, "step").capitalize()
        yield f"{steps} of all hosts compared, matched by {text.prose(hosts.matched_by)}."
    skew = "Clock skew between hosts:"
    if None not in (hosts.skew_start_ms, hosts.skew_end_ms):
        start, end = milliseconds(hosts.skew_start_ms), milliseconds(hosts.skew_end_ms)
        skew = f"The slowest host starts a step {start} after the median host and ends {end} after it;"
    yield text.sentence(f"{skew} {hosts.skew}")


def bars(hosts: Hosts) -> list[tuple[HostRow, list[tuple[str, float, float]]]]:
    """Return the hosts whose parts are known, each part with its time in ms and its share of the longest bar."""
    rows = [(row, words.parts_of(row.breakdown_ms)) for row in sorted_rows(hosts)]
    longest = max((sum(time for _, time in parts) for _, parts in rows), default=0.0)
    return [(row, [(part, time, time / longest) for part, time in parts]) for row, parts in rows if parts]


def steps_grid(rows: Sequence[HostRow]) -> Grid:
    """Return the steps of each host as a table."""
    parts = [part for part in PARTS if any(row.breakdown_ms.get(part) for row in rows)]
    late, noted = any(row.starts_late_ms is not None for row in rows), any(row.missing for row in rows)
    labels = [words.PART_LABELS[part] for part in parts]
    columns = ["host", "device", "steps", "step", "p10 to p90", "own work", *labels]
    cells = list[list[Cell]]()
    for row in rows:
        spread = "" if None in (row.p10_ms, row.p90_ms) else time_span(row.p10_ms, row.p90_ms)
        times = (row.own_ms, *map(row.breakdown_ms.get, parts), *[row.starts_late_ms] * late)
        step, *others = ("" if time is None else ms(time) for time in (row.median_ms, *times))
        noted_why = [text.prose(row.missing)] * noted
        cells.append([row.name, row.device, count(row.steps), step, spread, *others, *noted_why])
    return grid([*columns, *["start delay"] * late, *["why not compared"] * noted], cells)


def findings_grid(hosts: Hosts) -> Grid:
    """Return the findings with their hosts as a table."""
    rows: list[list[Cell]] = []
    for finding in hosts.findings:
        names = finding.hosts
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        where = f"{', '.join(map(text.name, names[:NAMED]))}{more}"
        if len(names) == len(hosts.rows):
            where = "both hosts" if len(names) == 2 else f"all {len(names)} hosts"  # noqa: PLR2004 - both is two
        severity, summary = finding.severity.word if finding.severity else "", text.sentence(finding.summary)
        rows.append([finding.rule, severity, where, summary, words.saves(finding.saving)])
    return grid(("rule", "severity", "hosts", "finding", "saves"), rows)
