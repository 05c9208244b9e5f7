"""All that tfdoctor prints and writes of a diagnosis, and what of it would command its reader."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path

from tfdoctor.cli.streams import Unread
from tfdoctor.compare.compare import compare
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.history.runs import KeptHistory, ReadRun
from tfdoctor.history.series import Demand, history
from tfdoctor.report import comparison, formats, terminal
from tfdoctor.report import history as history_report
from tfdoctor.report.files import UNCOMMANDING
from tfdoctor.report.formats import html
from tfdoctor.stored.files import of_text
from tfdoctor.terms.errors import InputError

HIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks of direction, and halves of characters; Markdown has zero-width spaces of ours."""

COMMAND = re.compile(r"^\s*::|##\[|##\w+\[", re.MULTILINE)
"""What CI runners obey."""

OURS = re.compile(r"::(error|warning|notice) (file=[^:\n]*,line=\d+,)?title=[^:,\n]*::[^\n]*")
"""The only commands of ours."""

DAYS = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")


def commanding(diagnosis: Diagnosis, notes: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield what a recording makes its readers obey: the report in all formats, its comparison and its history."""
    texts = dict(_reports(diagnosis))
    texts |= {f"note {at}": _printed(note) for at, note in enumerate(notes)}
    texts |= dict(_of_several(diagnosis, texts["json"]))
    for name, text in texts.items():
        if hidden := HIDDEN.search(text):
            yield f"{name} has the character {hidden[0]!r}: {text[: hidden.end()][-80:]!r}"
        obeyed = OURS.sub("", text) if name == formats.COMMANDS else text
        if "html" not in name and (command := COMMAND.search(obeyed)):
            yield f"{name} has a command: {obeyed[command.start() :][:80]!r}"


def refused(error: InputError) -> str:
    """Return what of a refusal commands a terminal, or ""."""
    text = _printed(f"tfdoctor: {error}\n")
    return f"the refusal {text!r} commands" if HIDDEN.search(text) or COMMAND.search(text) else ""


def _reports(shown: Diagnosis) -> Iterator[tuple[str, str]]:
    for name in formats.FORMATS:
        text = html.render_without_plotly(shown) if name == "html" else formats.render(name, shown)
        yield name, _written(formats.suffix(name), text)
        if name == "llm":
            yield name, _printed(text)
    yield "terminal", _printed(terminal.render(shown, width=60, color=False))


def _of_several(shown: Diagnosis, stored: str) -> Iterator[tuple[str, str]]:
    """Yield a comparison of the report with itself, and a history of it, from its file."""
    path = Path("report.json")
    rules = [result.rule for result in shown.results]
    again = of_text(stored, path, rules)
    dated = [replace(again, subject=replace(again.subject, recorded=day)) for day in DAYS]
    with suppress(InputError):  # nothing to compare
        compared = compare([again], [dated[0]])
        yield "diff", _printed(terminal.capture(comparison.sections, compared, width=60, color=False))
        for name in comparison.FORMATS:
            yield f"diff.{name}", _written(name, comparison.render(name, compared))
    runs = [ReadRun.of(f"run{at}", one) for at, one in enumerate(dated)]
    made = history(runs, KeptHistory(), Demand(last=1), {})
    yield "history", _printed(terminal.capture(history_report.sections, made, width=60, color=False))
    for name in history_report.FORMATS:
        yield f"history.{name}", _written(name, history_report.render(name, made))


def _written(suffix: str, text: str) -> str:
    """Return a text as it stands in its file."""
    return UNCOMMANDING.get(Path(f"report.{suffix}").suffix, str)(text)


def _printed(text: str) -> str:
    """Return a text as it reaches the output."""
    stream = StringIO()
    Unread(stream, lost=False).write(text)
    return stream.getvalue()


def as_stored(diagnosis: Diagnosis) -> object:
    """Return the object of a diagnosis' report.json."""
    return json.loads(formats.render("json", diagnosis))
