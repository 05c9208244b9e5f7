"""The report for the context of a language model: plain text with lines, numbers and edits, printed.

It has at most LIMIT bytes. Parts that do not fit are left out, and the last line says so: first come the headline
and the parts of run and step, then each finding with its edit, then the profile and what was checked.
"""

from collections.abc import Iterator

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.report import findings, sections, sentences, trial_words, trials
from tfdoctor.report.formats.md import fenced
from tfdoctor.report.page import Page, page
from tfdoctor.report.run.section import RunSection, where
from tfdoctor.report.tables import Grid, grids, measures
from tfdoctor.report.words import PART_LABELS, accounts, joined, segments, takes
from tfdoctor.terms.humanize import duration, place, quantity
from tfdoctor.terms.text import name, prose

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
    diagnosis = shown.diagnosis
    yield f"# {shown.title}\n{' '.join(shown.verdict)}"
    yield " ".join(shown.remarks)
    if shown.run:
        yield _run(shown.run)
    parts = [f"{PART_LABELS[part]} {time} ({of})" for part, time, of, _ in segments(diagnosis.steps)]
    yield f"Step: {', '.join(parts)}." if parts else ""
    yield "\n".join(f"{label}: {told}" for _, label, told in accounts(diagnosis))
    energy = sections.energy_brief(diagnosis)
    yield f"Energy: {energy}." if energy else ""
    yield f"Trust: {name(diagnosis.trust.level)}. {' '.join(sentences.trust(diagnosis))}"
    if budgets := diagnosis.budgets:
        yield f"Budgets:\n{_grid(sections.budget_grid(budgets), len(budgets))}"
    if diagnosis.trials and diagnosis.trials.rows:
        yield f"Measured by running the changes:\n{_grid(trials.changes_grid(diagnosis.trials))}"
    for rank, entry in enumerate(shown.entries, start=1):
        yield _finding(rank, entry, shown)
    yield "\n".join(shown.order)
    if sections.has_profile(diagnosis):
        rows: list[str] = []
        for row in diagnosis.profile.rows[:PROFILE_ROWS]:
            what, where, time, part = sections.profile_cells(row)
            rows.append(f"- {f'{what} {where}'.rstrip()}: {time} ({part}) {sections.reached_told(row)}")
        yield "\n".join(["## Profile of a step", *rows])
    healthy, unchecked = list(findings.by_outcome(diagnosis).values())[:2]
    yield f"Healthy rules: {', '.join(name(one.rule.name) for one in healthy) or 'none'}."
    notes = [f"- {name(one.rule.name)}: {findings.said(one)}" for one in unchecked]
    yield "\n".join(["## Not checked", *notes]) if notes else ""


def _run(run: RunSection) -> str:
    """Return the phases of the run, each with the lines that take most of it."""
    rows = []
    for row in run.phases:
        lines = ", ".join(
            " ".join(filter(None, (where(line), line.calls, duration(line.ms)))) for line in row.lines[:ROWS]
        )
        rows.append(f"- {row.phase} {duration(row.ms)} ({run.share(row)}){f': {lines}' if lines else ''}")
    return "\n".join([f"## {run.title}", *rows, *filter(None, [run.long]), *run.notes])


def _finding(rank: int, entry: Entry, shown: Page) -> str:
    """Return a finding: what it is, where, what it costs, and the change in the user's own lines."""
    result, trial = entry.result, findings.trial(entry, shown.diagnosis.trials)
    about = joined(findings.severity(entry), findings.known(entry), place(result.place))
    amount, each = findings.saving(entry, shown.diagnosis)
    saves, time = f"Saves {joined(amount, each)}." if amount else "", takes(result.takes)
    evidence = "; ".join(f"{prose(one.label)} {quantity(one.value)}" for one in measures(result.outcome))
    changes: list[str] = []
    for change in findings.changes(result):
        where = f" at {change.where}" if change.where else ""
        code = fenced(change.diff, "diff") if change.diff else fenced(change.code)
        changes.append(f"Change: {change.action}{where}{code.removeprefix(chr(10))}")
    return joined(
        f"## {rank}. {name(result.rule.doc.title)} [{findings.rules(entry)}] ({about})",
        *map(findings.summary, entry.symptoms),
        findings.summary(result),
        joined(saves, f"Takes {time}." if time else "", findings.how(entry), by=" "),
        f"Measured: {trial_words.told(*trial)}." if trial else "",
        f"Evidence: {evidence}." if evidence else "",
        *map(_grid, grids(result.outcome)),
        *changes,
        by="\n",
    )


def _grid(grid: Grid, most: int = ROWS) -> str:
    """Return the first rows of a table, each as "column: cell"."""
    shown = grid.first(most)
    rows = [
        "- " + ", ".join(f"{name}: {cell}" for name, cell in zip(shown.columns, row, strict=True) if cell)
        for row in shown.rows
    ]
    return "\n".join([*rows, *([f"- … {shown.omitted:,} more rows"] if shown.omitted else [])])
