"""What each kind of edit saves, beside what the report promised: ``python -m benchmarks.patches [KIND ...]``.

For each kind, `tfdoctor try` runs on a copy of a script that needs the edit, with only the rule that advises it. A
kind that no rule advises on this machine (XLA pays on accelerators) is tried as a patch, without a promise.
Everything in the table is read from the JSON report of that trial.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import commands, trying
from benchmarks.accuracy.corpus import named
from tfdoctor.edits.by_id import KINDS
from tfdoctor.edits.patch import FileChange, unified
from tfdoctor.source_code.splice import spliced
from tfdoctor.source_code.tree import SyntaxTree

HERE = Path(__file__).parent
OWN = HERE / "patched"
LOOPS = HERE / "loops"  # of the stopwatch that the scripts import; it does nothing here

MINUTES = 4.0
"""Of a trial: the first run and four to six rounds of three runs of about 15 s."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of edit, the script or pair of the corpus that it is tried on, and the rule that describes it.

    ``line_of`` is a part of the line to edit where no rule advises the edit on this machine; a line of "" is the
    whole file. None: the rule advises the edit.
    """

    edit_id: str
    script: Path | str
    rule: str
    line_of: str | None = None

    @property
    def name(self) -> str:
        """The script, as the table names it."""
        if isinstance(self.script, str):
            return f"accuracy/pairs/{self.script}"
        return self.script.relative_to(HERE).with_suffix("").as_posix()

    @property
    def text(self) -> str:
        """The script."""
        return named(self.script).text("fault") if isinstance(self.script, str) else self.script.read_text("utf-8")


CASES = (
    Case("prefetch", "loop_without_prefetch", "missing-prefetch"),
    Case("parallel-map", "spectrogram_map", "sequential-map"),
    Case("parallel-batch", OWN / "large_images.py", "serial-batch"),
    Case("parallel-interleave", "shards_one_by_one", "serial-reads"),
    Case("vectorized-map", "lines_of_csv", "per-element-map"),
    Case("cache", OWN / "decode_again.py", "uncached-preprocessing"),
    Case("mixed-precision", "wide_mlp", "float32-matmul"),
    Case("fused-batch-norm", "normalized_resnet", "unfused-batch-norm"),
    Case("run-eagerly-off", "debugging_left_on", "eager-step"),
    Case("steps-per-execution", OWN / "tiny_steps.py", "small-batch"),
    Case("jit-compile", OWN / "many_elementwise.py", "unfused-elementwise", line_of=""),
)


def unasked(case: Case, part: str) -> bytes:
    """Return the patch of an edit that no rule advises here."""
    text = case.text
    lines = enumerate(text.split("\n"), 1)
    line = next((number for number, one in lines if part and part in one), 0)
    after = spliced(text, KINDS[case.edit_id](SyntaxTree(text), line, ""))
    return unified([FileChange("train.py", text.encode(), after.encode())])


def row(case: Case, minutes: float) -> str:
    """Try the edit of a case; return its row of the table.

    Raises:
        FailedError: tfdoctor failed, or there is no edit to try.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, patch = Path(name, "run"), Path(name, f"{case.edit_id}.diff")
        folder.mkdir()
        (folder / "train.py").write_text(case.text, "utf-8")
        chosen = ["--only", case.rule]
        if case.line_of is not None:
            patch.write_bytes(unasked(case, case.line_of))
            chosen = ["--patch", str(patch)]
        options = ("--select", case.rule, *chosen, "--minutes", str(minutes), "--format", "json")
        out = Path(name, "recording")
        command = ("try", *options, "--yes", "--out", str(out), "train.py")
        trying.tfdoctor(folder, *command, PYTHONPATH=str(LOOPS))
        report = commands.report(out)
    tried = report["trials"]["variants"]
    one = next(one for one in tried if one["rules"] == [case.rule] or one["name"] == patch.name)
    promise = "not advised here" if case.line_of is not None else trying.promised(one["promised"])
    cells = (trying.step(report), promise, trying.measured(one), trying.trains(one))
    return trying.row(f"`{case.edit_id}`", case.name, *cells)


def main() -> None:
    """Print the table, a row or why there is none as soon as it is known."""
    chosen = trying.chosen(__doc__, "KIND", [case.edit_id for case in CASES], MINUTES)
    print("| edit | script | step | promised | measured | trains the same? |")
    print("|---|---|--:|--:|---|---|")
    for case in CASES:
        if case.edit_id not in chosen.names:
            continue
        try:
            print(row(case, chosen.minutes), flush=True)
        except commands.FailedError as why:
            print(f"<!-- {case.edit_id}: {why} -->", flush=True)


if __name__ == "__main__":
    main()
