"""The report for the context of a language model: plain text with lines, numbers and edits, printed.

It has at most LIMIT bytes. Parts that do not fit are left out, and the last line says so: first come the headline
and the parts of run and step, then each finding with its edit, then the profile and what was checked.
"""

from collections.abc import Iterator

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import ChangeEntry, Fault
from tfdoctor.report.formats.md import fenced
from tfdoctor.report.page import Page, page
from tfdoctor.report.run.section import RunSection, where
from tfdoctor.report.tables import Grid
from tfdoctor.terms.humanize import duration

# Bytes: 4,000 tokens of three bytes each. Tokens of English prose have four bytes, those of code and numbers about
# three (https://platform.openai.com/tokenizer).
LIMIT = 12_000
ROWS = 3  # Rows of a table, and lines of a phase: the longest come first

PROFILE_ROWS = 8

CUT = "\n… Parts were left out: the JSON report has them.\n"


def render(diagnosis: Diagnosis) -> str:
    """Return the report, the most important parts first."""
    room, kept, cut = LIMIT - len(CUT.encode()), list[str](), ""
    for block in filter(None, _blocks(page(diagnosis))):
        size = len(block.encode()) + 2
        if size > room:
            cut = CUT
            continue
        room -= size
        kept.append(block)
    return "\n\n".join(kept) + "\n" + cut


def _blocks(shown: Page) -> Iterator[str]:
    yield f"# {shown.title}\n{' '.join(shown.verdict)}"
    yield " ".join(shown.remarks)
    if shown.run:
        yield _run(shown.run)
    if shown.segments:
        parts = (f"{part.label} {part.time} ({part.share})" for part in shown.segments)
        yield f"Step: {', '.join(parts)}."
    yield "\n".join(f"{line.label}: {line.text}" for line in shown.accounts)
    yield f"Energy: {shown.energy.brief}." if shown.energy else ""
    yield f"Trust: {shown.trust_level}. {' '.join(shown.trust)}"
    if shown.budgets:
        yield f"Budgets:\n{_grid(shown.budgets.grid, len(shown.budgets.lines))}"
    if shown.trials and shown.trials.lines:
        yield f"Measured by running the changes:\n{_grid(shown.trials.grid)}"
    for rank, fault in enumerate(shown.results.faults, start=1):
        yield _fault(rank, fault)
    yield "\n".join(shown.order)
    if shown.profile:
        rows = [
            f"- {f'{line.what} {line.where}'.rstrip()}: {line.time} ({line.share}) {line.told}".rstrip()
            for line in shown.profile.lines[:PROFILE_ROWS]
        ]
        yield "\n".join(["## Profile of a step", *rows])
    yield f"Healthy rules: {', '.join(note.rule for note in shown.results.healthy) or 'none'}."
    unchecked = [f"- {note.rule}: {note.text}" for note in shown.results.unchecked]
    yield "\n".join(["## Not checked", *unchecked]) if unchecked else ""


def _run(run: RunSection) -> str:
    """Return the phases of the run, each with the lines that take most of it."""
    rows = []
    for row in run.phases:
        lines = ", ".join(
            " ".join(filter(None, (where(line), line.calls, duration(line.ms)))) for line in row.lines[:ROWS]
        )
        rows.append(f"- {row.phase} {duration(row.ms)} ({run.share(row)}){f': {lines}' if lines else ''}")
    return "\n".join([f"## {run.title}", *rows, *filter(None, [run.long]), *run.notes])


def _fault(rank: int, fault: Fault) -> str:
    """Return a finding: what it is, where, what it costs, and the change in the user's own lines."""
    about = ", ".join(filter(None, (fault.severity, fault.known, fault.where)))
    saves = f"Saves {fault.saving.whole}." if fault.saving.amount else ""
    takes = f"Takes {fault.takes}." if fault.takes else ""
    evidence = "; ".join(f"{line.label} {line.value}" for line in fault.lines)
    return "\n".join(
        filter(
            None,
            [
                f"## {rank}. {fault.title} [{fault.rules}] ({about})",
                *(related.summary for related in fault.symptoms),
                fault.summary,
                " ".join(filter(None, (saves, takes, fault.how))),
                f"Measured: {fault.trial.told}." if fault.trial else "",
                f"Evidence: {evidence}." if evidence else "",
                *map(_grid, fault.grids),
                *map(_change, fault.changes),
            ],
        )
    )


def _change(change: ChangeEntry) -> str:
    where = f" at {change.where}" if change.where else ""
    code = fenced(change.diff, "diff") if change.diff else fenced(change.code)
    return f"Change: {change.action}{where}" + code.removeprefix("\n")


def _grid(grid: Grid, most: int = ROWS) -> str:
    """Return the first rows of a table, each as "column: cell"."""
    shown = grid.first(most)
    rows = [
        "- " + ", ".join(f"{name}: {cell}" for name, cell in zip(shown.columns, row, strict=True) if cell)
        for row in shown.rows
    ]
    return "\n".join([*rows, *([f"- … {shown.omitted:,} more rows"] if shown.omitted else [])])
