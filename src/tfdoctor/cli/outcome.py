"""From a recording to report files and a terminal summary.

It brings all that a report needs: a script that is profiled does not wait for it.
"""

import sys
import webbrowser
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import typer

from tfdoctor.cli.gates import Gates
from tfdoctor.cli.options import SavingOptions
from tfdoctor.cli.streams import draw, say
from tfdoctor.diagnose.diagnose import diagnose as examine
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.examination import examined
from tfdoctor.facts.savings.given import EnergyPrices, Price
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import shown
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.report import files, terminal
from tfdoctor.report.formats import COMMANDS, PRINTED, prepare, render
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.scrub import Secrets, scrub
from tfdoctor.terms.progress_line import late_line
from tfdoctor.terms.record import Record
from tfdoctor.trace.xprof import Asked


class Output(Record):
    """Which reports to write, and how to show them."""

    formats: list[str]
    link: str = ""  # where the page will be found
    quiet: bool = False  # prints no summary
    scrubbed: bool = False  # names nobody, and no folder
    show: bool = False  # opens the page
    err: bool = False  # the summary goes to the standard error

    def safe(self, diagnosis: Diagnosis, recording: Recording | None) -> Diagnosis:
        """Return the diagnosis as it may be shown: where it is scrubbed, it names no person and no machine."""
        return scrub(diagnosis, Secrets.of(recording)) if recording and self.scrubbed else diagnosis

    def write(self, diagnosis: Diagnosis, folder: Path, prefix: str = "") -> None:
        """Write the reports and, unless quiet, print the summary.

        Formats that are no files go to the standard output, even if quiet.
        """
        diagnosis = replace(diagnosis, link=self.link or diagnosis.link)
        written = files.write(diagnosis, folder, self.formats, prefix)
        printed = [name for name in self.formats if name in PRINTED]
        for name in printed:
            show = draw if name == COMMANDS else typer.echo
            show(render(name, diagnosis).removesuffix("\n"))
        if not self.quiet:
            stream = sys.stderr if self.err or printed else sys.stdout
            summary = terminal.render(diagnosis, color=terminal.wants_color(stream)).rstrip("\n")
            draw(f"{summary}\n", stream)
            for path in written:
                typer.echo(f"wrote {path.name}" if self.scrubbed else UPLOADS.written(path), file=stream)
        if self.show:
            open_pages(written)


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
    formats: Iterable[str] = (),
    asked: Asked | None = None,
    says: bool = False,
) -> Diagnosis:
    """Apply rules and gates to a recording, and add what the last `tfdoctor try` of it measured.

    ``asked`` is a question that xprof works on already. While it does, what writes reports in these formats is
    imported. On a terminal it ``says`` what it reads if that takes long.
    """
    usd, energy = savings.usd_per_hour, EnergyPrices(savings.usd_per_kwh, savings.gco2_per_kwh)
    many = "traces" if len(recording.traces) > 1 else "trace"
    size = sum(path.stat().st_size for path in recording.traces if path.exists())
    read = f"the {many}, {size / 1e6:,.0f} MB"
    if len(recording.workers) > 1:
        read = f"the recordings of {len(recording.workers)} workers"
    priced = {"price": None if usd is None else Price(usd), "energy_prices": energy}
    told = {"for_epochs": savings.for_epochs, "question": asked, "meanwhile": partial(prepare, formats)}
    with late_line(f"reading {read} …", sys.stderr, quiet=not says):
        diagnosis = examined(recording, title, rules, **priced, **told)
    diagnosis = gates.applied(diagnosis)
    if energy != EnergyPrices() and diagnosis.energy is None:
        say("note: no energy is shown: the recording has no counter of it for long enough")
    return diagnosis


def untried(recording: Recording, title: str, rules: Rulebook) -> Diagnosis:
    """Apply these rules to a recording, without what any trial measured."""
    return examine(recording, rules.rules, title, settings=rules.settings)


def tell(report: Record, rendering: ModuleType, formats: Iterable[str], out: Path | None, *, show: bool) -> None:
    """Write a comparison or a history in these formats, by its module of ``report``, and show it."""
    texts = {f"{rendering.STEM}.{one}": rendering.render(one, report) for one in formats}
    written = files.write_texts(out or Path(), texts) if texts else ()
    draw(terminal.capture(rendering.sections, report).rstrip("\n"))
    tell_files(written, show=show)


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
