"""What hand-written pages quote from the reports on samples, each quotation between two comments.

``<!-- figure SAMPLE PATH FORMAT -->12.2 ms<!-- /figure -->`` is one figure of a report, within a sentence:
PATH leads through the diagnosis, with the names of rules among its results.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.report import terminal, words
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import COMPRESSED, open_report
from tfdoctor.terms import humanize

ROOT = Path(__file__).resolve().parent.parent

SAMPLES = ROOT / "sample_traces"

TRIALS = ROOT / "docs" / "trials"
"""Reports of `tfdoctor try` on examples, as they were written with --scrub."""

FIGURE = re.compile(r"(<!-- figure (\S+) (\S+) (\S+) -->).*?(<!-- /figure -->)", re.DOTALL)

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "ms": humanize.milliseconds,
    "place": lambda place: f"`{humanize.location(place)}`",
    "saves": words.saves,
    "duration": humanize.duration,
    "of-run": lambda saving: f"{humanize.duration(saving.ms)} of the run ({humanize.share(saving.share)})",
}
"""How a figure is written: as in the reports."""


class QuotedError(ValueError):
    """A page quotes what the report on the sample does not say: the sentence around it is to be written anew."""


@cache
def diagnosed(sample: str) -> Diagnosis:
    """Return the diagnosis of a sample, by the rules as they are now."""
    recording = Recording.open(SAMPLES / sample)
    return diagnose(recording, all_rules(), sample, ask_xprof=False)


def report_on(sample: str) -> Iterator[str]:
    """Yield the report on a sample as in a terminal."""
    yield "```"
    yield terminal.render(diagnosed(sample), width=80, color=False).strip()
    yield "```"


def account_of(sample: str) -> Iterator[str]:
    """Yield how the report on a sample begins: its first sentences, and the account of the run."""
    first, *_ = "\n".join(report_on(sample)).partition("\n\nOne training step")
    yield first
    yield "```"


def headline_of(sample: str) -> Iterator[str]:
    """Yield the first sentences of the report on a sample, as a quotation."""
    first, *_ = "\n".join(report_on(sample)).removeprefix("```\n").partition("\n\n")
    yield f"> {' '.join(first.split())}"


def trial_of(name: str) -> Iterator[str]:
    """Yield what a stored trial has measured, as in a terminal."""
    report = open_report(TRIALS / f"{name}{COMPRESSED}", all_rules())
    told = terminal.render(report, width=80, color=False)
    _, title, rest = told.partition("Measured by running the changes\n")
    table, *_ = rest.partition("\n\n")
    yield "```"
    yield f"{title}{table}"
    yield "```"


def figures_filled(page: str) -> str:
    """Return a page with the current figures between its comments.

    Raises:
        QuotedError: a report has no such figure.
    """

    def fill(marked: re.Match[str]) -> str:
        start, sample, path, style, end = marked.groups()
        return f"{start}{_figure(sample, path, style)}{end}"

    return FIGURE.sub(fill, page)


def _figure(sample: str, path: str, style: str) -> str:
    node: Any = diagnosed(sample)
    try:
        for key in path.split("."):
            node = _below(node, key)
        text = FORMATS[style](node)
    except (AttributeError, KeyError, StopIteration) as error:
        raise QuotedError(f"the report on {sample} has no {path} ({style})") from error
    if text in ("", humanize.UNKNOWN):
        raise QuotedError(f"{path} of the report on {sample} is unknown")
    return text


def _below(node: Any, key: str) -> Any:  # noqa: ANN401 - any part of a diagnosis
    if isinstance(node, Mapping):
        return node[key]
    if isinstance(node, tuple):
        return next(result for result in node if result.rule.name == key)
    return getattr(node, key)
