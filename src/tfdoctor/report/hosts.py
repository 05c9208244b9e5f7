"""The hosts of a job compared, for every rendering."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis.hosts import HostRow, Hosts
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.report import sentences, tables
from tfdoctor.report.run.words import is_known
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, time_span
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell

NAMED = 4  # Hosts that a cell names; the JSON report has all


class Piece(Record):
    """One part of a host's bar: ``fraction`` is of the longest bar."""

    part: str
    fraction: float
    label: str


class Bar(Record):
    """What a host's median step goes to."""

    name: str
    time: str
    pieces: tuple[Piece, ...]


class Section(Record):
    """The hosts in words, bars and tables, sorted by own work, most first."""

    shown: str
    verdict: str
    slowest: str
    notes: tuple[str, ...]  # which host is shown, which steps were compared, how far apart the hosts are
    bars: tuple[Bar, ...]
    briefs: tuple[tuple[str, ...], ...]  # name, step, and what else a line has room for
    grid: tables.Grid
    faults: tables.Grid


def section(hosts: Hosts | None) -> Section | None:
    """Return the comparison of the hosts; None for a single one."""
    if hosts is None:
        return None
    rows = sorted(hosts.rows, key=lambda row: (-_own(row), bool(row.missing)))
    return Section(
        shown=text.name(hosts.shown),
        verdict=_verdict(hosts),
        slowest=text.sentence(hosts.slowest),
        notes=tuple(_notes(hosts)),
        bars=_bars(rows),
        briefs=tuple(map(_brief, rows)),
        grid=_grid(rows),
        faults=_faults(hosts),
    )


def _brief(row: HostRow) -> tuple[str, ...]:
    name = text.name(row.name)
    if row.missing:
        return name, "", text.prose(row.missing)
    own, parts = milliseconds(row.own_ms), _parts(row)
    most = max(parts, key=lambda part: part[1], default=("unknown", 0.0))
    largest = f"own work {own}; largest part: {PART_LABELS[most[0]]}, {milliseconds(most[1])}"
    return name, milliseconds(row.median_ms), largest


def _own(row: HostRow) -> float:
    return row.own_ms if row.own_ms is not None and is_known(row.own_ms) else -1.0


def _verdict(hosts: Hosts) -> str:
    """Say which host the verdict is about, and what its savings mean for the job."""
    shown, of = text.name(hosts.shown), counted(len(hosts.rows), "host")
    if hosts.straggler:
        lag, gain = milliseconds(hosts.lag_ms), milliseconds(hosts.gain_ms)
        return (
            f"The steps shown are those of {shown}, one of {of}. The other hosts wait for its {lag} of extra work. "
            f"The job gains at most {gain} per step from changes to this host alone."
        )
    return f"The steps shown are those of {shown}, one of {of}. The job gains only what all hosts save."


def _notes(hosts: Hosts) -> Iterator[str]:
    """Yield which host is shown, which steps were compared, and how far apart the clocks and the hosts are."""
    yield f"This report shows {text.name(hosts.shown)} in full: {text.prose(hosts.why_shown)}."
    if hosts.matched:
        steps = counted(hosts.matched, "step").capitalize()
        yield f"{steps} of all hosts compared, matched by {text.prose(hosts.matched_by)}."
    if hosts.skew_start_ms is None or hosts.skew_end_ms is None:
        yield text.sentence(f"Clock skew between hosts: {hosts.skew}")
    else:
        start, end = milliseconds(hosts.skew_start_ms), milliseconds(hosts.skew_end_ms)
        yield text.sentence(
            f"The slowest host starts a step {start} after the median host and ends {end} after it; {hosts.skew}"
        )


def _bars(rows: Sequence[HostRow]) -> tuple[Bar, ...]:
    longest = max((sum(time for _, time in _parts(row)) for row in rows), default=0.0)
    return tuple(
        Bar(
            text.name(row.name),
            milliseconds(row.median_ms),
            tuple(
                Piece(part, time / longest, f"{PART_LABELS[part]}: {milliseconds(time)}")
                for part, time in _parts(row)
            ),
        )
        for row in rows
        if _parts(row)
    )


def _parts(row: HostRow) -> list[tuple[str, float]]:
    return sentences.known_parts(row.breakdown_ms)


def _grid(rows: Sequence[HostRow]) -> tables.Grid:
    parts = [part for part in PARTS if any(row.breakdown_ms.get(part) for row in rows)]
    late = any(row.starts_late_ms is not None for row in rows)
    noted = any(row.missing for row in rows)
    columns = ["host", "device", "steps", "step", "p10 to p90", "own work"]
    columns += [PART_LABELS[part] for part in parts]
    columns += ["start delay"] * late + ["why not compared"] * noted

    def cells(row: HostRow) -> list[Cell]:
        known = row.p10_ms is not None and row.p90_ms is not None
        spread = time_span(row.p10_ms, row.p90_ms) if known else ""
        shown: list[Cell] = [row.name, row.device, count(row.steps), _ms(row.median_ms)]
        shown += [spread, _ms(row.own_ms)]
        shown += [_ms(row.breakdown_ms.get(part) if row.breakdown_ms else None) for part in parts]
        return shown + [_ms(row.starts_late_ms)] * late + [text.prose(row.missing)] * noted

    return tables.grid(columns, map(cells, rows))


def _ms(value: float | None) -> Cell:
    return "" if value is None else ms(value)


def _faults(hosts: Hosts) -> tables.Grid:
    rows: list[list[Cell]] = []
    for finding in hosts.findings:
        severity = finding.severity.name.lower() if finding.severity else ""
        names = finding.hosts
        if len(names) == len(hosts.rows):
            where = "both hosts" if len(names) == 2 else f"all {len(names)} hosts"  # noqa: PLR2004 - both is two
        else:
            rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            where = f"{', '.join(map(text.name, names[:NAMED]))}{rest}"
        saves = sentences.saves(finding.saving)
        rows.append([finding.rule, severity, where, text.sentence(finding.summary), saves])
    return tables.grid(("rule", "severity", "hosts", "finding", "saves"), rows)
