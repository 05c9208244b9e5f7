"""Applies each kind of edit that ``tfdoctor report --patch`` writes, and times the script before and after.

For each script: record it, report with ``--patch``, ``git apply`` to a copy, and time both in turns
with the stopwatch of the corpus. Where no rule advises the change for this machine (XLA on a CPU, say) the
same edit is made without a finding, and nothing is predicted::

    python benchmarks/patches.py                  # all kinds, about 15 minutes on two cores
    python benchmarks/patches.py --only prefetch --rounds 1
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "accuracy"))

from runs import LOOPS, QUIET, FailedError, step_ms  # noqa: E402 - beside this file

from tfdoctor.edits.diff import Change, unified  # noqa: E402 - same
from tfdoctor.edits.kinds import KINDS  # noqa: E402 - same
from tfdoctor.edits.module import Module  # noqa: E402 - same
from tfdoctor.edits.splice import spliced  # noqa: E402 - same

PAIRS, OWN = HERE / "accuracy" / "pairs", HERE / "patches"


@dataclass(frozen=True, slots=True)
class Case:
    """A script with a fault that one kind of edit mends; ``mark`` is text of the line to edit."""

    script: Path
    mark: str
    example: str = ""


def _fault(name: str, mark: str, example: str = "") -> Case:
    return Case(PAIRS / name / "fault.py", mark, example)


CASES = {
    "prefetch": _fault("loop_without_prefetch", "with_options"),
    "parallel-map": _fault("random_crop_map", ".map("),
    "parallel-batch": Case(OWN / "batch_of_images.py", ".batch("),
    "parallel-interleave": _fault("shards_one_by_one", ".interleave("),
    "cache": Case(OWN / "decode_before_shuffle.py", ".map("),
    "drop-remainder": Case(OWN / "odd_last_batch.py", ".batch("),
    "mixed-precision": _fault("wide_mlp", "keras.Input", 'set_global_policy("mixed_bfloat16")'),
    "jit-compile": Case(OWN / "compiled_loop.py", "@tf.function"),
    "steps-per-execution": Case(OWN / "many_small_steps.py", "compile(", "steps_per_execution=16"),
    "run-eagerly-off": _fault("debugging_left_on", "compile("),
    "autotune-on": _fault("one_private_thread", "threading"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one kind: shares of the step; predicted is None where no rule advised it."""

    kind: str
    rule: str
    predicted: float | None
    at_most: bool
    measured: tuple[float, ...]
    before_ms: float

    def line(self) -> str:
        """Return a row of the table."""
        least = "at most " if self.at_most else ""
        promise = "not advised" if self.predicted is None else f"{least}{self.predicted:.0%}"
        middle = statistics.median(self.measured)
        spread = f"{min(self.measured):.0%} to {max(self.measured):.0%}"
        rule = f"`{self.rule}`" if self.rule else ""
        return f"| `{self.kind}` | {rule} | {promise} | {middle:.0%} ({spread}) | {self.before_ms:.1f} ms |"


def command(folder: Path, *arguments: str) -> None:
    """Run a command in the folder of a script.

    Raises:
        FailedError: its exit code was not 0.
    """
    env = os.environ | QUIET | {"PYTHONPATH": str(LOOPS)}
    done = subprocess.run(
        arguments, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise FailedError(f"{' '.join(arguments)}: {done.stderr[-600:]}")


def advised(kind: str, recording: Path, folder: Path) -> Mapping[str, Any] | None:
    """Return the finding that has an edit of this kind in its patch, after writing that patch."""
    report = (sys.executable, "-m", "tfdoctor", "report", str(recording), "--format", "json")
    command(folder, *report)
    found = json.loads((recording / "report.json").read_text("utf-8"))["results"]
    for result in found:
        if any(each["trial"] == kind and each["edit"] for each in result["remedies"]):
            command(folder, *report, "--select", result["rule"], "--patch", "fixes.diff")
            return result  # type: ignore[no-any-return]  # JSON
    return None


def by_hand(kind: str, case: Case, folder: Path) -> None:
    """Write the patch of one edit without a finding."""
    text = (folder / "train.py").read_text("utf-8")
    line = 1 + next(at for at, one in enumerate(text.splitlines()) if case.mark in one)
    after = spliced(text, KINDS[kind](Module(text), line, case.example))
    patch = unified([Change("train.py", text.encode(), after.encode())])
    (folder / "fixes.diff").write_bytes(patch)


def measure(kind: str, case: Case, rounds: int) -> Row:
    """Record, patch a copy, and time both in turns.

    Raises:
        FailedError: a script, tfdoctor or git failed.
    """
    with tempfile.TemporaryDirectory() as place:
        before, after = Path(place, "before"), Path(place, "after")
        before.mkdir()
        shutil.copy(case.script, before / "train.py")
        profile = (sys.executable, "-m", "tfdoctor", "profile", "--format", "json")
        command(before, *profile, "--out", str(Path(place, "recording")), "train.py")
        result = advised(kind, Path(place, "recording"), before)
        if result is None:
            by_hand(kind, case, before)
        print((before / "fixes.diff").read_text("utf-8"), file=sys.stderr)
        shutil.copytree(before, after)
        command(after, "git", "apply", "fixes.diff")
        if digest(before) == digest(after):
            raise FailedError(f"{kind}: the patch changed nothing")
        pairs = [
            (step_ms(str(before / "train.py")), step_ms(str(after / "train.py")))
            for _ in range(rounds)
        ]
    saving = result["saving"] if result else None
    return Row(
        kind,
        result["rule"] if result else "",
        saving["share"] if saving else None,
        bool(saving) and saving["bound"] == "at-most",
        tuple(1.0 - then / now for now, then in pairs),
        statistics.median(now for now, _ in pairs),
    )


def digest(folder: Path) -> str:
    """Return the hash of the script of a folder."""
    return hashlib.sha256((folder / "train.py").read_bytes()).hexdigest()


def main() -> None:
    """Print a row for each kind as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(CASES), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print("| edit | rule | predicted | measured (of so many rounds) | step before |")
    print("|---|---|---|---|---|", flush=True)
    for kind in chosen.only or CASES:
        try:
            print(measure(kind, CASES[kind], chosen.rounds).line(), flush=True)
        except FailedError as fault:
            print(f"| `{kind}` | failed: {fault} | | | |", flush=True)


if __name__ == "__main__":
    main()
