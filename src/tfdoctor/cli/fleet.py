"""``tfdoctor fleet``: diagnose many recordings, and rank what they waste."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import typer

from tfdoctor.cli.commands import FleetOptions
from tfdoctor.cli.options import INTERRUPTED, book
from tfdoctor.cli.outcome import tell_files
from tfdoctor.cli.streams import draw, say
from tfdoctor.diagnosis.fleet_report import FleetRun
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import InputError, TfdoctorError
from tfdoctor.terms.humanize import about_duration, counted
from tfdoctor.terms.progress_line import line
from tfdoctor.terms.text import Drawn

try:
    import distributed  # noqa: F401 - an optional dependency
    import pyarrow  # noqa: F401, ICN001 - same
except ImportError as error:
    raise InputError(
        f"tfdoctor fleet needs {error.name}, which is not installed: run pip install 'tfdoctor[fleet]'."
    ) from error

from tfdoctor.fleet.cluster import THIS_MACHINE
from tfdoctor.fleet.places import FleetPlan, RecordingJob, found
from tfdoctor.fleet.table import PAGES, PARQUET, ROWS, FleetTable, examine, rows_of, settings_of, to_examine
from tfdoctor.fleet.totals import device_prices, report
from tfdoctor.report import fleet as rendering
from tfdoctor.report.files import write_texts
from tfdoctor.report.terminal import capture

SAVE_S = 60.0  # Rows and reports that belong at a URL are uploaded so often: a command that is killed loses no more
TIMEOUT_S = 600.0  # For one recording: a gigabyte takes about a minute to read
UPDATE_S = 0.2  # Between two states of the line that counts
SETTLED = 10  # Recordings that must be done before the time that is left can be estimated


def fleet(given: FleetOptions) -> int:
    """Examine recordings, write the table and the page, and return the exit code."""
    out = given.out or Path("fleet")
    if given.on and given.workers:
        raise typer.BadParameter("--on uses the workers of its cluster: leave --workers out")
    prices = device_prices(given.usd_per_device_hour or ())
    chosen = given.rules.settings(*given.where)
    applied = book(chosen)
    plan = FleetPlan(
        config=chosen,
        settings=settings_of(chosen, applied, scrubbed=given.scrub),
        timeout_s=given.timeout or TIMEOUT_S,
        memory_bytes=given.memory,
        scrubbed=given.scrub,
        pages=given.reports,
        scheduler=given.on,
        workers=given.workers or THIS_MACHINE,
        local=UPLOADS.shown(out) == str(out),
    )
    with line("looking for recordings …", sys.stderr):
        recordings, empty = found(given.where)
    for place in empty:
        say(f"note: no recording at {place}")
    with FleetTable(UPLOADS.with_former(out, ROWS)) as table:
        jobs = to_examine(recordings, table, plan)
        UPLOADS.save(out)  # what cannot be written there is known before the work
        if known := len(recordings) - len(jobs):
            say(f"{known:,} of {len(recordings):,} recordings are in the table and have not changed")
        ending = _examined(jobs, table, plan)
        rows, left = rows_of(recordings, table, plan)
        made = report(rows, prices, {rule.name: rule.doc.title for rule in applied.known}, left)
        table.finish([*made.runs, *made.failed])
        UPLOADS.remove_later(out, PAGES, table.is_old)
        (page,) = write_texts(out, {rendering.PAGE: rendering.render(made)})
        draw(capture(rendering.sections, made).rstrip("\n"))
        typer.echo("")
        tell_files((page, out / PARQUET, out / ROWS), show=given.show)
        if pages := sum(bool(run.report) for run in made.runs):
            typer.echo(f"and {counted(pages, 'report')} in {UPLOADS.shown(out / PAGES)}")
    if ending:
        raise ending
    return 0 if made.runs else TfdoctorError.exit_code


def _examined(
    jobs: Sequence[RecordingJob], table: FleetTable, plan: FleetPlan
) -> TfdoctorError | typer.Exit | None:
    """Examine recordings, and return what ended that early: Ctrl-C, or a lost scheduler."""
    saved = time.monotonic()
    try:
        for _ in _counted(examine(jobs, table, plan, say), len(jobs), sys.stderr):
            if time.monotonic() - saved >= SAVE_S:
                UPLOADS.save(table.folder)
                saved = time.monotonic()
    except KeyboardInterrupt:
        return typer.Exit(INTERRUPTED)
    except InputError as error:
        if not table.rows:
            raise
        return error
    return None


def _counted(runs: Iterable[FleetRun], total: int, stream: TextIO) -> Iterator[FleetRun]:
    """Yield runs, and say on a line how far it is, such as ``312 of 1,000 recordings, about 4 min left``."""
    failed, begun = 0, time.monotonic()
    updated = begun

    def write(text: str) -> None:
        if total and stream.isatty():
            stream.write(Drawn(f"\r\x1b[K{text}"))
            stream.flush()

    try:
        write(f"tfdoctor: 0 of {total:,} recordings")
        for done, run in enumerate(runs, start=1):
            now, failed = time.monotonic(), failed + bool(run.failure)
            if now - updated >= UPDATE_S:
                left_ms = 1e3 * (now - begun) / done * (total - done)
                left = f", about {about_duration(left_ms)} left" if done >= SETTLED else ""
                failures = f", {failed:,} failed" if failed else ""
                write(f"tfdoctor: {done:,} of {total:,} recordings{failures}{left}")
                updated = now
            yield run
    finally:
        write("")
