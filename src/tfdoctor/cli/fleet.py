"""``tfdoctor fleet``: diagnose many recordings, and rank what they waste."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.amounts import parse_bytes, parse_seconds
from tfdoctor.cli.messages import draw, say
from tfdoctor.cli.options import Scrub, Show, at_least, parse_out
from tfdoctor.cli.outcome import INTERRUPTED, open_page
from tfdoctor.cli.rule_selection import RuleOptions, book
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import InputError, TfdoctorError
from tfdoctor.terms.humanize import counted

if TYPE_CHECKING:
    from tfdoctor.diagnosis.fleet_report import FleetReport
    from tfdoctor.fleet.job import FleetPlan, RecordingJob
    from tfdoctor.fleet.places import FoundRecording
    from tfdoctor.fleet.table import FleetTable
    from tfdoctor.fleet.totals import DevicePrices

SAVE_S = 60.0  # Rows and reports that belong at a URL are uploaded so often: a command that is killed loses no more
TIMEOUT_S = 600.0  # For one recording: a gigabyte takes about a minute to read


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Where recordings are examined, and what one may take."""

    on: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler of a cluster, such as tcp://scheduler:8786 [default: this machine].",
        ),
    ] = ""
    workers: Annotated[
        int | None,
        typer.Option(
            parser=at_least(1), metavar="N", help="Recordings examined at once on this machine [default: its CPUs]."
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Longest time for one recording [default: 10m]."),
    ] = None
    memory: Annotated[
        int | None,
        typer.Option(
            parser=parse_bytes,
            metavar="SIZE",
            help="Most memory for one recording, such as 4GB [default: the machine's, shared by its workers].",
        ),
    ] = None


def fleet(  # noqa: PLR0913 - its arguments are the command's options
    *,
    where: Annotated[
        list[str],
        typer.Argument(
            metavar="WHERE...",
            help="Folders or URLs above recordings or TensorBoard log directories, report.json files, or patterns "
            "of these in quotes.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=parse_out,
            metavar="PATH",
            help="Folder for the page, the table and the reports; recordings in its table are not examined again "
            "[default: fleet].",
        ),
    ] = None,
    work: WorkOptions,
    reports: Annotated[
        bool, typer.Option(help="Write the HTML report of each recording too (about 1 MB each).")
    ] = True,
    usd_per_device_hour: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRICE",
            help="Price of one device for one hour in US dollars: 3.20, or H100=3.20 for devices with H100 in "
            "their name; can be repeated.",
        ),
    ] = None,
    rules: RuleOptions,
    scrub: Scrub = False,
    show: Show = False,
) -> None:
    """Diagnose many recordings, and rank the runs and the faults by what they waste."""
    _need_packages()
    from tfdoctor.fleet.cluster import THIS_MACHINE  # noqa: PLC0415 - an optional dependency
    from tfdoctor.fleet.job import FleetPlan  # noqa: PLC0415 - same
    from tfdoctor.fleet.table import settings_of  # noqa: PLC0415 - same
    from tfdoctor.fleet.totals import DevicePrices  # noqa: PLC0415 - same

    if work.on and work.workers:
        raise typer.BadParameter("--on uses the workers of its cluster: leave --workers out")
    folder = out or Path("fleet")
    prices = DevicePrices.parse(usd_per_device_hour or ())
    chosen = rules.settings(*where)
    applied = book(chosen)
    plan = FleetPlan(
        config=chosen,
        settings=settings_of(chosen, applied, scrubbed=scrub),
        timeout_s=work.timeout or TIMEOUT_S,
        memory_bytes=work.memory,
        scrubbed=scrub,
        pages=reports,
        scheduler=work.on,
        workers=work.workers or THIS_MACHINE,
        local=not UPLOADS.has(folder),
    )
    titles = {rule.name: rule.doc.title for rule in applied.known}
    raise typer.Exit(_fleet(_found(where), folder, plan, prices, titles, show=show))


def _need_packages() -> None:
    """Check that the optional dependencies are there.

    Raises:
        InputError: one is not installed.
    """
    try:
        import distributed  # noqa: F401, PLC0415 - an optional dependency
        import pyarrow  # noqa: F401, ICN001, PLC0415 - same
    except ImportError as error:
        raise InputError(
            f"tfdoctor fleet needs {error.name}, which is not installed: run pip install 'tfdoctor[fleet]'."
        ) from error


def _found(where: Sequence[str]) -> "Sequence[FoundRecording]":
    """Return the recordings at these places; say where there is none."""
    from tfdoctor.fleet.places import found  # noqa: PLC0415 - an optional dependency
    from tfdoctor.terms.progress_line import line  # noqa: PLC0415 - keeps --help fast

    with line("looking for recordings …", sys.stderr):
        recordings, empty = found(where)
    for place in empty:
        say(f"note: no recording at {place}")
    return recordings


def _fleet(
    recordings: "Sequence[FoundRecording]",
    out: Path,
    plan: "FleetPlan",
    prices: "DevicePrices",
    titles: Mapping[str, str],
    *,
    show: bool,
) -> int:
    """Examine the recordings, write the table and the page, and return the exit code."""
    from tfdoctor.fleet.table import ROWS, FleetTable, rows_of, to_examine  # noqa: PLC0415 - an optional dependency
    from tfdoctor.fleet.totals import report  # noqa: PLC0415 - same

    with FleetTable(UPLOADS.with_former(out, [ROWS])) as table:
        jobs = to_examine(recordings, table, plan)
        UPLOADS.save(out)  # what cannot be written there is known before the work
        if known := len(recordings) - len(jobs):
            say(f"{known:,} of {len(recordings):,} recordings are in the table and have not changed")
        ending = _examined(jobs, table, plan)
        rows, left = rows_of(recordings, table, plan)
        made = report(rows, prices, titles, left)
        _write(made, table, out, show=show)
    if ending:
        raise ending
    return 0 if made.runs else TfdoctorError.exit_code


def _examined(
    jobs: "Sequence[RecordingJob]", table: "FleetTable", plan: "FleetPlan"
) -> TfdoctorError | typer.Exit | None:
    """Examine recordings, and return what ended that early: Ctrl-C, or a lost scheduler."""
    from tfdoctor.cli.counter import Counter  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.fleet.table import examine  # noqa: PLC0415 - an optional dependency

    try:
        saved = time.monotonic()
        with Counter(len(jobs), sys.stderr) as counter:
            for run in examine(jobs, table, plan, say):
                counter.add(failed=bool(run.failure))
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


def _write(report: "FleetReport", table: "FleetTable", out: Path, *, show: bool) -> None:
    from tfdoctor.fleet.table import PAGES, PARQUET, ROWS  # noqa: PLC0415 - an optional dependency
    from tfdoctor.report import fleet as rendering  # noqa: PLC0415 - brings jinja2
    from tfdoctor.report.fleet import terminal  # noqa: PLC0415 - brings rich

    table.finish([*report.runs, *report.failed])
    UPLOADS.remove_later(out, PAGES, table.is_old)
    page = rendering.write(report, out)
    draw(terminal.render(report).rstrip("\n"))
    typer.echo("")
    for path in (page, out / PARQUET, out / ROWS):
        typer.echo(UPLOADS.written(path))
    if pages := sum(bool(run.report) for run in report.runs):
        typer.echo(f"and {counted(pages, 'report')} in {UPLOADS.shown(out / PAGES)}")
    if show:
        open_page(page)
