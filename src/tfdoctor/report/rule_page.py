"""The page of a rule in Markdown: its documentation, its limits and its example."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.report.findings import changes, summary
from tfdoctor.report.tables import grids, measures
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.pages import ABOUT, EXAMPLE, LIMITS, SECTIONS, shown
from tfdoctor.terms.text import prose
from tfdoctor.terms.verdict import Finding, Verdict


def rule_page(rule: Rule, *, off: str = "") -> str:
    """Return the page, with the current values of limits that are not the defaults."""
    example = generated_example(rule, rule.sick, rule.healthy) if rule.sick and rule.healthy else rule.doc.example
    written = "\n".join(f"## {name}\n\n{rule.doc.sections[name]}\n" for name in SECTIONS)
    generated = {ABOUT: _about(rule, off), LIMITS: limits_table(rule), EXAMPLE: example}
    return shown(f"# {rule.doc.title}\n\n{written}{_sections(generated)}")


def generated(rule: Rule, sick: Callable[[], Verdict], healthy: Callable[[], Verdict]) -> str:
    """Return the sections of a page file that `make docs` writes; ``sick`` and ``healthy`` are the rule's cases."""
    example = generated_example(rule, sick, healthy)
    return _sections({ABOUT: _about(rule), EXAMPLE: example})


def _sections(texts: Mapping[str, str]) -> str:
    return "".join(f"\n## {name}\n\n{text}\n" for name, text in texts.items() if text)


def _about(rule: Rule, off: str = "") -> str:
    facts = ", ".join(f"`{name}`" for name in rule.needs)
    about = {"rule": f"`{rule.name}`", "topic": f"{rule.topic}", "since": rule.since or "your own rule"}
    about |= {"facts it uses": facts} | ({"switched off": off} if off else {})
    return "\n".join(table(("", ""), about.items()))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"


def limits_table(rule: Rule) -> str:
    """Return the table of limits: name, default, current value where that differs, and what it limits."""
    limits: Any = rule.limits
    if limits is None:
        return ""
    known = fields(limits)
    changed = any(getattr(limits, limit.name) != limit.default for limit in known)
    rows: list[tuple[str, ...]] = []
    for limit in known:
        now = (f"{getattr(limits, limit.name):g}",) if changed else ()
        rows.append((f"`{limit.name}`", f"{limit.default:g}", *now, rule.why(limit)))
    columns = ("limit", "default", *(("now",) if changed else ()), "what it limits")
    where = f"Set the limits in `pyproject.toml`, in the table `[tool.tfdoctor.limits.{rule.name}]`."
    return "\n".join([*table(columns, rows), "", where])


def generated_example(rule: Rule, sick: Callable[[], Verdict], healthy: Callable[[], Verdict]) -> str:
    """Return the smallest run with the fault, as a report shows it, and a healthy one."""
    outcome = sick()
    end = f"A healthy run: {_continued(_first_line(healthy))}"
    if not isinstance(outcome, Finding):
        return end
    quoted = _quoted(Result(rule=rule, outcome=outcome))
    return "\n".join([f"{_first_line(sick)} The finding:\n", *quoted, "", end])


def _quoted(result: Result) -> Iterator[str]:
    """Yield a finding's summary, evidence and changes as one quotation."""
    numbers = [
        f"- {prose(one.label)}: {quantity(one.value)}{f' (limit: {quantity(one.limit)})' if one.limit else ''}"
        for one in measures(result.outcome)
    ]
    tables = (list(table(grid.columns, grid.rows)) for grid in grids(result.outcome))
    blocks = [[f"**{summary(result)}**"], numbers, *tables]
    for change in changes(result):
        where = f" (`{change.where}`)" if change.where else ""
        blocks.append([f"{change.action}{where}"])
        blocks.append(["```python", *change.code.splitlines(), "```"] if change.code else [])
    for number, block in enumerate(filter(None, blocks)):
        yield from ([">"] if number else [])
        yield from (f"> {line}".rstrip() for line in block)


def _continued(sentence: str) -> str:
    """Return a sentence as the rest of another: names with capitals inside, such as XLA, keep the first one."""
    first = sentence.partition(" ")[0]
    return sentence if first[1:] != first[1:].lower() else f"{first[:1].lower()}{sentence[1:]}"


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
