"""Writes the reports of docs/gallery, with measured savings: ``python -m benchmarks.gallery [NAME ...]``.

Each script of examples/gallery is profiled, then `tfdoctor try` runs it with the changes that its report advises
and that tfdoctor can make, and with patches: remedies that have to be made by hand, with their promise, and 16-bit
precision where the report does not advise it. The rows that are printed are read from the JSON report of the
trial, which is stored; `make docs` writes it as Markdown and fills the page of the gallery.
"""

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import commands, trying
from tfdoctor.diagnosis.trials import Difference
from tfdoctor.edits.patch import FileChange, unified
from tfdoctor.report import trial_words
from tfdoctor.rules.operations import unfused_batch_norm
from tfdoctor.stored.files import COMPRESSED, open_report
from tfdoctor.terms.humanize import counted, milliseconds, percent, quantity_span
from tfdoctor.terms.units import ratio
from tfdoctor.terms.verdict import Bound

ROOT = Path(__file__).parents[1]
SCRIPTS, REPORTS = ROOT / "examples" / "gallery", ROOT / "docs" / "gallery"

MINUTES = 15.0
"""Of a trial: five rounds of up to four runs of 20 to 40 s."""

NORM, PRECISION = "unfused-batch-norm", "float32-matmul"


def fused_batch_norm(text: str) -> str:
    """Clone the model with fused batch normalization, by the code that the rule gives."""
    text = _after_imports(text, f"import tensorflow as tf\n\n\n{unfused_batch_norm.CODE['drop-in']}\n")
    clone = f"{unfused_batch_norm.CODE['clone']}\nmodel = clone\n"
    return text.replace("model.compile(", f"{clone}model.compile(", 1)


def mixed_bfloat16(text: str) -> str:
    """Set the policy above all layers."""
    return _after_imports(text, 'keras.mixed_precision.set_global_policy("mixed_bfloat16")\n')


def _after_imports(text: str, added: str) -> str:
    lines = text.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.startswith(("import ", "from ")))
    return "".join([*lines[: last + 1], added, *lines[last + 1 :]])


@dataclass(frozen=True, slots=True)
class Entry:
    """A script of the gallery, and the rules whose change is tried as a patch if tfdoctor cannot make it."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    rules: tuple[str, ...] = (PRECISION,)
    diffs: tuple[tuple[str, str], ...] = ()  # further rules, and the patch beside the script

    @property
    def patched(self) -> dict[str, str]:
        """The rules by the names of their patches."""
        of_rules = {_diff(CHANGES[rule]): rule for rule in self.rules}
        return of_rules | {diff: rule for rule, diff in self.diffs}

    @property
    def file(self) -> str:
        """The name of its reports."""
        return self.name.lower().replace(" ", "-")


Change = Callable[[str], str]
"""Changes the text of a script."""

CHANGES: dict[str, Change] = {NORM: fused_batch_norm, PRECISION: mixed_bfloat16}

BOTH = "both.diff"

ENTRIES = (
    Entry("Image folder", "image_folder.py"),
    Entry("VGG16", "application.py", ("VGG16", "64")),
    Entry("MobileNetV2", "application.py", ("MobileNetV2", "96"), (NORM, PRECISION)),
    Entry("EfficientNetB0", "application.py", ("EfficientNetB0", "96"), (NORM, PRECISION)),
    Entry("ResNet50", "application.py", ("ResNet50", "64"), (NORM, PRECISION)),
    Entry("Text transformer", "text_transformer.py", diffs=(("padding-waste", "text-by-length.diff"),)),
)


def by_hand(entry: Entry, report: trying.Object) -> list[str]:
    """Return the rules whose change has to be made by a patch: all but those whose edit tfdoctor can make."""
    return [
        rule
        for rule in entry.rules
        if not any(remedy["edit"] for remedy in _finding(report, rule).get("remedies", ()))
    ]


def _finding(report: trying.Object, rule: str) -> trying.Object:
    """Return the finding of a rule, or an empty object."""
    results = report["results"]
    found = (one for one in results if one["rule"] == rule and one["outcome"] == "finding")
    return next(found, {})


def patches(entry: Entry, report: trying.Object, folder: Path) -> Iterator[str]:
    """Write the patches of an entry; yield each as a value of ``--patch``."""
    text = (SCRIPTS / entry.script).read_text("utf-8")
    rules, everything = by_hand(entry, report), text
    for rule in rules:
        change = CHANGES[rule]
        everything = change(everything)
        path = _write(folder / _diff(change), entry.script, text, change(text))
        yield f"{rule}={path}" if _finding(report, rule) else str(path)
    if len(rules) > 1 and all(_finding(report, rule) for rule in rules):
        yield str(_write(folder / BOTH, entry.script, text, everything))
    for rule, diff in entry.diffs:
        path = SCRIPTS / diff
        yield f"{rule}={path}" if _finding(report, rule) else str(path)


def _diff(change: Change) -> str:
    return f"{change.__name__.replace('_', '-')}.diff"


def _write(path: Path, script: str, before: str, after: str) -> Path:
    path.write_bytes(unified([FileChange(script, before.encode(), after.encode())]))
    return path


def tried(entry: Entry, minutes: float) -> trying.Object:
    """Profile a script and try its changes; keep the reports, and return that in JSON.

    Raises:
        FailedError: tfdoctor failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name, "gallery"), Path(name, "recording")
        folder.mkdir()
        shutil.copy(SCRIPTS / entry.script, folder)
        # The report is published: --scrub writes the home folder, which holds the interpreter, as "~".
        environment = {"HOME": str(ROOT), "KERAS_HOME": str(Path(name, "keras"))}
        profile = ("profile", "--stop-after", "--format", "json", "--out", str(out))
        trying.tfdoctor(folder, *profile, entry.script, *entry.arguments, **environment)
        chosen = (f"--patch={patch}" for patch in patches(entry, commands.report(out), Path(name)))
        options = ("--minutes", str(minutes), "--yes", "--scrub", "--format", "json")
        trying.tfdoctor(folder, "try", str(out), *options, *chosen, **environment)
        packed = gzip.compress((out / "report.json").read_bytes(), mtime=0)
        (REPORTS / f"{entry.file}{COMPRESSED}").write_bytes(packed)
        return commands.report(out)


def rows(entry: Entry, report: trying.Object) -> Iterator[str]:
    """Yield the rows of an entry: the first names the script."""
    links = f"[report]({entry.file}{COMPRESSED}), [Markdown]({entry.file}.md)"
    steps = report["steps"]
    recorded = milliseconds(steps["untraced_ms"] or steps["step_ms"])
    head = (" ".join((entry.name, *entry.arguments[1:])), links, recorded, trying.step(report))
    for one in report["trials"]["variants"]:
        cells = (one["name"], promise(one, entry, report), trying.measured(one))
        yield trying.row(*head, *cells, alternated(entry, one["name"]), trying.trains(one))
        head = ("", "", "", "")


def promise(variant: trying.Object, entry: Entry, report: trying.Object) -> str:
    """Return what the report promises for a variant, or that it does not advise it."""
    together = report["together"]
    if variant["name"] == BOTH:
        all_of_it = together and set(together["rules"]) == set(CHANGES)
        return trying.promised(together if all_of_it else None)
    rule = entry.patched.get(variant["name"])
    if rule and not _finding(report, rule):
        return "not advised"
    return trying.promised(variant["promised"])


HEAD = (
    (
        "| script | report | step in it | step in the trial | change | promised | measured | step by step "
        "| trains the same? |"
    ),
    "|---|---|--:|--:|---|--:|---|---|---|",
)

BY_TURNS = REPORTS / "alternating.json"
"""What `benchmarks.alternating` measured."""

Saved = dict[str, float]
"""The steps of each of two trainings, their medians in ms, the share that a change saves, and its 95 % interval."""


def by_turns() -> dict[str, dict[str, Saved]]:
    """Return what changes saved step by step, by entry and change."""
    found: dict[str, dict[str, Saved]] = {}
    return json.loads(BY_TURNS.read_text("utf-8")) if BY_TURNS.is_file() else found


def alternated(entry: Entry, change: str) -> str:
    """Return what a change saves step by step: "12 % (11 to 13 %)"; "" where that was not measured."""
    one = by_turns().get(entry.name, {}).get(change)
    if one is None:
        return ""
    return f"{percent(one['share'])} ({quantity_span(ratio(one['low']), ratio(one['high']))})"


def markdown() -> Iterator[str]:
    """Yield the table, how sure its figures are, and what became of the promises, from the stored reports."""
    yield from HEAD
    for entry in ENTRIES:
        yield from rows(entry, stored(entry))
    yield ""
    yield from _intervals()
    yield from _beside_turns()


def stored(entry: Entry) -> trying.Object:
    """Return the stored report of an entry."""
    report: trying.Object = json.loads(gzip.decompress(_stored(entry).read_bytes()))
    return report


def _stored(entry: Entry) -> Path:
    return REPORTS / f"{entry.file}{COMPRESSED}"


def _intervals() -> Iterator[str]:
    """Yield how wide the intervals of the trials are, and which promises lie outside of theirs.

    How many promises lie within is not counted: a wide interval has room for nearly any.
    """
    found = [
        (f"{entry.name}, {row.name}", row)
        for entry in ENTRIES
        if (trials := open_report(_stored(entry), ()).trials)
        for row in trials.rows
        if row.measured and row.measured.difference is not Difference.UNKNOWN
    ]
    widths = [row.measured.high - row.measured.low for _, row in found if row.measured]
    if widths:
        many, usual = counted(len(widths), "trial"), _points(median(widths))
        ends = f"{round(100 * min(widths))} to {round(100 * max(widths))}"
        yield f"The intervals of {many} with a figure are {usual} wide (median; {ends})."
    inside = trial_words.HOLDS, trial_words.HOLDS_AT_MOST, trial_words.ABOVE
    told = ((name, trial_words.against(row.promised, row.measured)) for name, row in found)
    missed = [f"{name}: {words}" for name, words in told if words and words not in inside]
    if missed:
        yield f"Promises outside of their interval: {'; '.join(missed)}."


def _beside_turns() -> Iterator[str]:
    """Yield how far the promises are from what was measured step by step, in points of the step."""
    found = [
        (row.promised, turns[row.name]["share"])
        for entry in ENTRIES
        if (trials := open_report(_stored(entry), ()).trials)
        for row in trials.rows
        if row.promised and row.name in (turns := by_turns().get(entry.name, {}))
    ]
    apart = [abs(one.share - saved) for one, saved in found if one.bound is Bound.EXPECTED]
    kept = [saved <= one.share for one, saved in found if one.bound is Bound.AT_MOST]
    if apart:
        most, usual = _points(max(apart)), _points(median(apart))
        promises = counted(len(apart), "promise differs", "promises differ")
        yield f"Step by step, {promises} from the saving by {usual} (median) and at most {most}."
    if kept:
        yield f"Upper bounds that hold step by step: {sum(kept)} of {len(kept)}."


def _points(share: float) -> str:
    return counted(round(100 * share), "point")


def main() -> None:
    """Print the table, the rows of a script as soon as they are known."""
    chosen = trying.chosen(__doc__, "NAME", [entry.name for entry in ENTRIES], MINUTES)
    print(*HEAD, sep="\n")
    for entry in ENTRIES:
        if entry.name in chosen.names:
            print(*rows(entry, tried(entry, chosen.minutes)), sep="\n", flush=True)


if __name__ == "__main__":
    main()
