"""From a recording to report files and a terminal summary.

It brings all that a report needs: a script that is profiled does not wait for it.
"""

import shlex
import sys
import webbrowser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from tfdoctor.cli.commands import TRIAL_MINUTES
from tfdoctor.cli.gates import Gates, exit_code
from tfdoctor.cli.options import INTERRUPTED, SavingOptions
from tfdoctor.cli.streams import draw, say
from tfdoctor.compare.baseline import program_of
from tfdoctor.diagnose.diagnose import diagnose as examine
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.examination import Question, examined
from tfdoctor.facts.savings.price import EnergyPrices
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import shown
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.report import terminal
from tfdoctor.report.files import write as write_files
from tfdoctor.report.formats import COMMANDS, is_streamed, prepare, render
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.scrub import Secrets, scrub
from tfdoctor.terms.errors import OutputError, TfdoctorError
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.progress_line import late_line, line
from tfdoctor.trace.xprof import Asked


@dataclass(frozen=True, slots=True)
class Output:
    """Which reports to write, and how to show them."""

    formats: list[str]
    link: str = ""  # where the page will be found
    quiet: bool = False  # prints no summary
    scrubbed: bool = False  # the folder's name is not printed
    show: bool = False  # opens the page
    err: bool = False  # the summary goes to the standard error


def report_after(
    recording: Recording, title: str, rules: Rulebook, gates: Gates, output: Output, savings: SavingOptions
) -> int:
    """Report on a run that has ended; errors here must not hide the exit code of the script."""
    folder = recording.root or Path()
    try:
        with line("reading the trace …", sys.stderr, quiet=output.quiet):
            found = diagnose(recording, title, rules, gates, savings, formats=output.formats)
        diagnosis = without_names(found, recording) if output.scrubbed else found
        write(diagnosis, folder, output)
        gates.write(diagnosis, program_of(recording), quiet=output.quiet)
        following = next_steps(diagnosis, folder)
        if following and not output.quiet and not output.scrubbed:
            typer.echo(following, err=True)
    except KeyboardInterrupt:
        say(f"report interrupted: run `tfdoctor report {UPLOADS.shown(folder)}`")
        return INTERRUPTED
    except OutputError as error:  # a full disk, say: the run itself did not fail
        say(str(error))
        return error.exit_code if gates.set or gates.target else 0
    except TfdoctorError as error:
        say(str(error))
        return error.exit_code
    return exit_code(diagnosis, gates.fail_on)


def next_steps(diagnosis: Diagnosis, folder: Path) -> str:
    """Return how to apply the changes that are edits, and how to measure them; "" where there is none."""
    ready = sum(any(not edit.missing for edit in result.edits) for result in diagnosis.results)
    if not ready:
        return ""
    uploaded, them = UPLOADS.shown(folder), "it" if ready == 1 else "them"
    at = shlex.quote(uploaded)
    # A trial needs a recording on this machine.
    most = f"in at most {TRIAL_MINUTES:g} minutes"
    measures = f", `tfdoctor try {at}` measures {them} {most}" if uploaded == str(folder) else ""
    return (
        f"{counted(ready, 'change').capitalize()} can be applied automatically: `tfdoctor report {at} "
        f"--patch fix.diff` writes {them}{measures}."
    )


def noted(recording: Recording, *, quiet: bool = False) -> Recording:
    """Say what there is to note about a recording, which may be a copy of one at a URL."""
    notes = tuple(map(shown, recording.notes))
    for note in () if quiet else notes:  # the report has them too
        say(f"note: {note}")
    return replace(recording, notes=notes)


def diagnose(  # noqa: PLR0913 - what to examine, by what, and what the report is to be
    recording: Recording,
    title: str,
    rules: Rulebook,
    gates: Gates,
    savings: SavingOptions,
    *,
    formats: Sequence[str] = (),
    asked: Asked | None = None,
    says: bool = False,
) -> Diagnosis:
    """Apply rules and gates to a recording, and add what the last `tfdoctor try` of it measured.

    ``asked`` is a question that xprof works on already. While it does, what writes reports in these formats is
    imported. On a terminal it ``says`` what it reads if that takes long.
    """
    question = Question(
        budget=gates.budget,
        baseline=None if gates.baseline is None else (gates.baseline, str(gates.file)),
        usd_per_hour=savings.usd_per_hour,
        energy_prices=EnergyPrices(savings.usd_per_kwh, savings.gco2_per_kwh),
        for_epochs=savings.for_epochs,
    )
    with late_line(f"reading {_named(recording)} …", sys.stderr, quiet=not says):
        meanwhile = partial(prepare, formats)
        diagnosis = examined(recording, title, rules, question, asked=asked, meanwhile=meanwhile)
    gates.say_what_is_unchecked(diagnosis)
    priced = savings.usd_per_kwh is not None or savings.gco2_per_kwh is not None
    if priced and diagnosis.energy is None:
        say("note: no energy is shown: the recording has no counter of it for long enough")
    return diagnosis


def _named(recording: Recording) -> str:
    """Return what is read: "the trace, 118 MB"."""
    if len(recording.workers) > 1:
        return f"the recordings of {len(recording.workers)} workers"
    many = "traces" if len(recording.traces) > 1 else "trace"
    size = sum(path.stat().st_size for path in recording.traces if path.exists())
    return f"the {many}, {size / 1e6:,.0f} MB"


def untried(recording: Recording, title: str, rules: Rulebook) -> Diagnosis:
    """Apply these rules to a recording, without what any trial measured."""
    return examine(recording, rules.rules, title, settings=rules.settings)


def without_names(diagnosis: Diagnosis, recording: Recording) -> Diagnosis:
    """Return a diagnosis that names no person and no machine of the recording."""
    return scrub(diagnosis, Secrets.of(recording))


def write(diagnosis: Diagnosis, folder: Path, output: Output, prefix: str = "") -> None:
    """Write the reports and, unless quiet, print the summary.

    Formats that are no files go to the standard output, even if quiet.
    """
    diagnosis = replace(diagnosis, link=output.link or diagnosis.link)
    written = write_files(diagnosis, folder, output.formats, prefix)
    printed = [*filter(is_streamed, output.formats)]
    for name in printed:
        show = draw if name == COMMANDS else typer.echo
        show(render(name, diagnosis).removesuffix("\n"))
    if not output.quiet:
        stream = sys.stderr if output.err or printed else sys.stdout
        summary = terminal.render(diagnosis, color=terminal.wants_color(stream)).rstrip("\n")
        draw(f"{summary}\n", stream)
        for path in written:
            typer.echo(f"wrote {path.name}" if output.scrubbed else UPLOADS.written(path), file=stream)
    if output.show:
        open_pages(written)


def tell_files(paths: Iterable[Path], *, show: bool) -> None:
    """Say what was written, and open the page of it if the user wants to see it."""
    for path in paths:
        typer.echo(UPLOADS.written(path))
        if show:
            open_pages([path])


def open_pages(paths: Iterable[Path]) -> None:
    """Open the pages among these files in the user's browser, or say that none was found: they are there."""
    for page in paths:
        if page.suffix == ".html" and not webbrowser.open(page.resolve().as_uri()):
            say(f"no browser was found: open {page} yourself.")
