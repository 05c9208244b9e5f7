"""A rule's page in Markdown: what it says of itself, its limits, and its example."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from tfdoctor import __version__
from tfdoctor.diagnosis import Diagnosis, Result, StepsSummary, Subject, Trust
from tfdoctor.kinds import StepSource, TrustLevel
from tfdoctor.report.page import Fault, page
from tfdoctor.rule import SECTIONS, Rule
from tfdoctor.verdict import Finding


def rule_page(rule: Rule, *, off: str = "") -> str:
    """Return the page; with the limits' current values where they are not the defaults."""
    about = [("rule", f"`{rule.name}`"), ("topic", f"{rule.topic}"),
             ("since", rule.since or "one of your own"),
             ("facts it reasons over", ", ".join(f"`{name}`" for name in rule.needs))]  # fmt: skip
    if off:
        about.append(("switched off", off))
    return "\n".join(
        [
            f"# {rule.doc.title}\n",
            *table(("", ""), about),
            "",
            *(f"## {name}\n\n{rule.doc.sections[name]}\n" for name in SECTIONS),
            *_limits(rule),
            *_example(rule),
            f"Healthy, to compare: {_lowered(_first_line(rule.healthy))}",
            "",
        ]
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"


def _limits(rule: Rule) -> Iterator[str]:
    """Yield the table of limits: name, default (and value, where it is another) and what it limits."""
    limits: Any = rule.limits
    if limits is None:
        return
    known = fields(limits)
    changed = any(getattr(limits, one.name) != one.default for one in known)
    columns = ("limit", "default", *(("now",) if changed else ()), "what it limits")
    yield "## Limits\n"
    rows = (
        (
            f"`{one.name}`",
            f"{one.default:g}",
            *((f"{getattr(limits, one.name):g}",) if changed else ()),
            one.metadata["why"],
        )
        for one in known
    )
    yield from table(columns, rows)
    yield f"\nSet them in `pyproject.toml`, under `[tool.tfdoctor.limits.{rule.name}]`.\n"


def _example(rule: Rule) -> Iterator[str]:
    """Yield the rule's own example, as a report shows it."""
    outcome = rule.sick()
    if not isinstance(outcome, Finding):
        return
    diagnosis = Diagnosis(
        version=__version__,
        subject=Subject(title="example"),
        steps=StepsSummary(source=StepSource.NONE),
        trust=Trust(level=TrustLevel.HIGH),
        results=(Result(rule=rule, outcome=outcome),),
    )
    yield "## Example\n"
    yield f"{_first_line(rule.sick)} The rule says:\n"
    yield from _quoted(page(diagnosis).faults[0])
    yield ""


def _quoted(fault: Fault) -> Iterator[str]:
    """Yield a finding's summary, evidence and changes as one quotation."""
    blocks: list[list[str]] = [[f"**{fault.summary}**"]]
    blocks.append([f"- {x.label}: {x.value}{_beside(x.limit)}" for x in fault.lines])
    blocks += [list(table(grid.columns, grid.rows)) for grid in fault.grids]
    for change in fault.changes:
        where = f" (`{change.where}`)" if change.where else ""
        blocks.append([f"{change.action}{where}"])
        blocks.append(["```python", *change.code.splitlines(), "```"] if change.code else [])
    filled = [block for block in blocks if block]
    for number, block in enumerate(filled):
        yield from ([">"] if number else [])
        yield from (f"> {line}".rstrip() for line in block)


def _beside(limit: str) -> str:
    return f" (limit: {limit})" if limit else ""


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
