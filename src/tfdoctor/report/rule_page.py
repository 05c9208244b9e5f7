"""The page of a rule in Markdown: its documentation, its limits and its example."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from tfdoctor.diagnosis import Result
from tfdoctor.diagnosis.rule import SECTIONS, Rule
from tfdoctor.report.entries import Entry
from tfdoctor.report.findings import Fault, fault
from tfdoctor.terms.verdict import Finding


def rule_page(rule: Rule, *, off: str = "") -> str:
    """Return the page, with the current values of limits that are not the defaults."""
    about = [("rule", f"`{rule.name}`"), ("topic", f"{rule.topic}"),
             ("since", rule.since or "your own rule"),
             ("facts it uses", ", ".join(f"`{name}`" for name in rule.needs))]  # fmt: skip
    if off:
        about.append(("switched off", off))
    healthy = _first_line(rule.healthy)
    return "\n".join(
        [
            f"# {rule.doc.title}\n",
            *table(("", ""), about),
            "",
            *(f"## {name}\n\n{rule.doc.sections[name]}\n" for name in SECTIONS),
            *_limits(rule),
            *_example(rule),
            f"A healthy run: {_continued(healthy)}",
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
    """Yield the table of limits: name, default, current value where that differs, and what it limits."""
    limits: Any = rule.limits
    if limits is None:
        return
    known = fields(limits)
    changed = any(getattr(limits, limit.name) != limit.default for limit in known)
    rows: list[tuple[str, ...]] = []
    for limit in known:
        now = (f"{getattr(limits, limit.name):g}",) if changed else ()
        rows.append((f"`{limit.name}`", f"{limit.default:g}", *now, limit.metadata["why"]))
    yield "## Limits\n"
    yield from table(("limit", "default", *(("now",) if changed else ()), "what it limits"), rows)
    yield f"\nSet the limits in `pyproject.toml`, in the table `[tool.tfdoctor.limits.{rule.name}]`.\n"


def _example(rule: Rule) -> Iterator[str]:
    """Yield the rule's own example, as a report shows it."""
    outcome = rule.sick()
    if not isinstance(outcome, Finding):
        return
    yield "## Example\n"
    yield f"{_first_line(rule.sick)} The finding:\n"
    yield from _quoted(fault(Entry(Result(rule=rule, outcome=outcome))))
    yield ""


def _quoted(fault: Fault) -> Iterator[str]:
    """Yield a finding's summary, evidence and changes as one quotation."""
    blocks: list[list[str]] = [[f"**{fault.summary}**"]]
    limits = [f" (limit: {line.limit})" if line.limit else "" for line in fault.lines]
    lines = zip(fault.lines, limits, strict=True)
    blocks.append([f"- {line.label}: {line.value}{limit}" for line, limit in lines])
    blocks += [list(table(grid.columns, grid.rows)) for grid in fault.grids]
    for change in fault.changes:
        where = f" (`{change.where}`)" if change.where else ""
        blocks.append([f"{change.action}{where}"])
        blocks.append(["```python", *change.code.splitlines(), "```"] if change.code else [])
    filled = [block for block in blocks if block]
    for number, block in enumerate(filled):
        yield from ([">"] if number else [])
        yield from (f"> {line}".rstrip() for line in block)


def _continued(sentence: str) -> str:
    """Return a sentence as the rest of another: names with capitals inside, such as XLA, keep the first one."""
    first = sentence.partition(" ")[0]
    return sentence if first[1:] != first[1:].lower() else f"{first[:1].lower()}{sentence[1:]}"


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
