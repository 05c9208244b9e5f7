"""Examines a fleet: finds the recordings, leaves out those whose rows are there, and adds a row for each other."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.fleet import cluster
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.fleet.scrubbed import scrubbed
from tfdoctor.fleet.table import FleetTable, known_sizes
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.rulebook.config import Config
from tfdoctor.terms.record import Record

# Failures that another attempt does not change, as long as the files do not change.
FINAL = ("", Failure.UNREADABLE.value)


class FleetPlan(Record, kw_only=True):
    """How to examine recordings, and where."""

    config: Config
    settings: str  # see `settings_of`
    timeout_s: float
    memory_bytes: int | None = None
    scrubbed: bool = False
    pages: bool = True
    scheduler: str = ""  # "": this machine
    workers: int = 1  # of this machine
    local: bool = True  # the table is in a folder of this machine and not at a URL: so are its pages


def settings_of(config: Config, book: Rulebook, *, scrubbed: bool) -> str:
    """Return the SHA-256 of what rows depend on besides their files: the version, the rules and their settings."""
    own = [
        (file.name, hashlib.sha256(file.read_bytes()).hexdigest())
        for folder in config.rules
        for file in sorted(Path(folder).glob("*.py"))
    ]
    rules = [rule.name for rule in book.rules]
    whole = repr((__version__, rules, book.settings, own, scrubbed))
    return hashlib.sha256(whole.encode()).hexdigest()


def to_examine(found: Sequence[FoundRecording], table: FleetTable, plan: FleetPlan) -> tuple[RecordingJob, ...]:
    """Return a job for each recording without a row that is still true."""
    current = [run for run in table.rows.values() if _is_true(run, table.folder, plan)]
    unchanged = {(run.key, run.stamp) for run in current if run.stamp}
    sizes = known_sizes(current)
    return tuple(
        RecordingJob(
            found=one,
            config=plan.config,
            settings=plan.settings,
            timeout_s=plan.timeout_s,
            memory_bytes=plan.memory_bytes,
            scrubbed=plan.scrubbed,
            page=plan.pages,
            known=sizes.get(one.nbytes, ()),
        )
        for one in found
        if (one.key, one.stamp) not in unchanged
    )


def _is_true(run: FleetRun, folder: Path, plan: FleetPlan) -> bool:
    """Say whether a row need not be made again."""
    if run.settings != plan.settings or run.failure not in FINAL:
        return False
    has_page = bool(run.report) and (not plan.local or (folder / run.report).is_file())
    return bool(run.failure) or has_page or not plan.pages


def examine(
    jobs: Sequence[RecordingJob], table: FleetTable, plan: FleetPlan, tell: cluster.Tell
) -> Iterator[FleetRun]:
    """Examine recordings; yield each row when it is in the table. ``tell`` shows what a cluster waits for.

    Raises:
        InputError: there is no scheduler, its workers lack tfdoctor, or it is gone.
    """
    if not jobs:
        return
    rows = {run.digest: run for run in table.rows.values() if _is_true(run, table.folder, plan)}
    places = {job.found.key: job.found for job in jobs}
    with cluster.connected(plan.scheduler, plan.workers, tell) as client:
        for one in cluster.examined(client, jobs):
            run = _row(one, rows, table)
            run = scrubbed(run, places[run.key]) if plan.scrubbed else run
            table.add(run)
            yield run


def _row(one: ExaminedRecording, rows: Mapping[str, FleetRun], table: FleetTable) -> FleetRun:
    """Return the row of what was examined: of files that are known, that of these, at their new place."""
    run = one.run
    if one.known:
        same = rows[run.digest]
        error = same.error.replace(same.place, run.place)
        return replace(same, place=run.place, key=run.key, stamp=run.stamp, error=error, copies=())
    return replace(run, report=table.add_page(run, one.page)) if one.page else run


def rows_of(found: Sequence[FoundRecording], table: FleetTable, plan: FleetPlan) -> tuple[list[FleetRun], int]:
    """Return the rows of the recordings that were found, and how many have none that is still true."""
    rows = [
        run
        for one in found
        if (run := table.rows.get(one.key)) and (run.stamp, run.settings) == (one.stamp, plan.settings)
    ]
    return rows, len(found) - len(rows)
