"""What each edit of ``--patch`` saves, against what the report promised: ``python -m benchmarks.patches``.

For each kind of edit a script is recorded, `tfdoctor report --patch` writes the patch of the rule that advises
it, `git apply` applies that to a copy, and both are timed by turns with the stopwatch in the script. A kind
that no rule advises on this machine (XLA pays on accelerators) is edited without a promise. Words in the
command line choose kinds; ``--rounds`` says how often each script is timed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.runs import LOOPS, QUIET, FailedError, step_ms
from tfdoctor.edits.by_id import KINDS
from tfdoctor.edits.diff import FileChange, unified
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import spliced

HERE = Path(__file__).parent
PAIRS, OWN = HERE / "accuracy" / "pairs", HERE / "patched"


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of edit, the script that it is tried on, and the rule that advises it there ("" for none)."""

    edit_id: str
    script: Path
    rule: str


CASES = (
    Case("prefetch", PAIRS / "loop_without_prefetch" / "fault.py", "missing-prefetch"),
    Case("parallel-map", PAIRS / "spectrogram_map" / "fault.py", "sequential-map"),
    Case("parallel-batch", OWN / "large_images.py", "serial-batch"),
    Case("parallel-interleave", PAIRS / "shards_one_by_one" / "fault.py", "serial-reads"),
    Case("cache", OWN / "decode_again.py", "uncached-preprocessing"),
    Case("autotune-on", PAIRS / "one_private_thread" / "fault.py", "disabled-autotune"),
    Case("mixed-precision", PAIRS / "wide_mlp" / "fault.py", "float32-matmul"),
    Case("run-eagerly-off", PAIRS / "debugging_left_on" / "fault.py", "eager-step"),
    Case("steps-per-execution", OWN / "tiny_steps.py", "small-batch"),
    Case("jit-compile", OWN / "many_elementwise.py", ""),
    Case("drop-remainder", OWN / "ragged_end.py", ""),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: shares of the step, and its times in ms; None is unknown."""

    case: Case
    promised: str
    before_ms: float
    after_ms: float

    def __str__(self) -> str:
        saved = 1.0 - self.after_ms / self.before_ms
        script = self.case.script.relative_to(HERE).as_posix()
        times = f"{self.before_ms:.2f} ms | {self.after_ms:.2f} ms"
        return f"| `{self.case.edit_id}` | {script} | {times} | {self.promised} | {saved:.0%} |"


def run(folder: Path, *command: str) -> bytes:
    """Run a command in a folder and return what it prints.

    Raises:
        FailedError: its exit code was not 0.
    """
    env = os.environ | QUIET | {"PYTHONPATH": str(LOOPS)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    if done.returncode:
        raise FailedError(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-900:]!r}"
        )
    return done.stdout


def advised(case: Case, folder: Path) -> tuple[bytes, str]:
    """Record a script and return the patch of one rule, and the share of the step that it promises."""
    tfdoctor = (sys.executable, "-m", "tfdoctor")
    out = folder / "recording"
    run(folder, *tfdoctor, "profile", "--no-report", "--out", str(out), "train.py")
    chosen = ("--select", case.rule, "--format", "json", "--patch", "-")
    patch = run(folder, *tfdoctor, "report", str(out), *chosen)
    results = json.loads((out / "report.json").read_text("utf-8"))["results"]
    saving = next(result["saving"] for result in results if result["rule"] == case.rule)
    if saving is None:
        return patch, "no figure"
    most = "at most " if saving["bound"] == "at-most" else ""
    return patch, f"{most}{saving['share']:.0%}"


def unasked(case: Case, folder: Path) -> tuple[bytes, str]:
    """Return the patch of an edit that nothing advised."""
    text = (folder / "train.py").read_text("utf-8")
    batch = next(
        (number for number, line in enumerate(text.split("\n"), 1) if ".batch(" in line), 0
    )
    line = batch if case.edit_id == "drop-remainder" else 0
    after = spliced(text, KINDS[case.edit_id](SyntaxTree(text), line, ""))
    return unified([FileChange("train.py", text.encode(), after.encode())]), "not advised here"


def measured(case: Case, rounds: int) -> Row:
    """Patch a copy of a script and time both, by turns.

    Raises:
        FailedError: a command failed, or there is no patch.
    """
    with tempfile.TemporaryDirectory() as name:
        before, after = Path(name, "before"), Path(name, "after")
        before.mkdir()
        shutil.copy(case.script, before / "train.py")
        patch, promised = (advised if case.rule else unasked)(case, before)
        if not patch:
            raise FailedError(f"{case.edit_id}: no patch for {case.script}")
        print(patch.decode(), file=sys.stderr)
        shutil.copytree(before, after, ignore=shutil.ignore_patterns("recording"))
        Path(name, "fixes.diff").write_bytes(patch)
        run(after, "git", "apply", "../fixes.diff")
        times = [
            [step_ms(str(side / "train.py")) for side in (before, after)] for _ in range(rounds)
        ]
    return Row(case, promised, *map(statistics.median, zip(*times, strict=True)))


def rows(kinds: list[str], rounds: int) -> Iterator[str]:
    """Yield the table's rows, and why there is none."""
    for case in CASES:
        if kinds and case.edit_id not in kinds:
            continue
        try:
            yield str(measured(case, rounds))
        except FailedError as why:
            yield f"<!-- {case.edit_id}: {why} -->"


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="kinds of edits, all by default")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print("| edit | script | before | after | promised | saved |\n|---|---|--:|--:|--:|--:|")
    for row in rows(chosen.kinds, chosen.rounds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
