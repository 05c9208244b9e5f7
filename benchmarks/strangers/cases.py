"""The scripts of a round, and what is true of each.

A round is a folder of cases, packed as ``rounds/N.zip``. A case is a folder with ``case.json``, ``sick.py`` and its
fix, ``healthy.py``; a trap has ``healthy.py`` only. Modules that the scripts import are named
in ``files``, the same for both. Its writer declares what is slow, on which lines, and the measured step times. A
second person, before tfdoctor runs for the first time, adds which rules name that fault (``named_by``) and which
further findings are true (``acceptable``).
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

SICK, HEALTHY = "sick", "healthy"

SUCCEEDED: Mapping[str, tuple[str, ...]] = {
    "python-in-loop": ("between-steps",),
    "slow-call": ("slow-call", "slow-prediction", "slow-evaluation", "frequent-saving"),
    "step-outlier": ("step-outlier", "between-steps"),
    "zero-learning-rate": (),
}
"""Rules in the keys of earlier rounds, and those that report their findings today: others, or none."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: two scripts, the fault, and the rules that name it."""

    folder: Path
    fault: str = ""
    where: tuple[int, ...] = ()  # lines of sick.py
    named_by: tuple[str, ...] = ()  # rules: each names the fault
    named_if_line: tuple[str, ...] = ()  # rules that name it where they point at one of those lines
    acceptable: dict[str, frozenset[str]] = field(default_factory=dict)  # true as well, by script
    spare: bool = False  # beyond the round's number of cases: not scored
    by_mean: bool = False  # the saving is that of the mean step
    step_function: str = ""
    per_mark: dict[str, float] = field(default_factory=dict)  # samples or steps between two marks
    measured: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()  # paths within the folder of modules that the scripts import
    classes: tuple[str, ...] = ()  # of changes, as its writer calls the fault's (see classes.py)
    where_file: str = ""  # that has those lines; "" is sick.py
    by_run: bool = False  # the saving is that of the whole run
    trap: bool = False  # nothing is slow here that a change would help

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``case.json``.

        Raises:
            OSError: there is none.
            ValueError: it is not JSON.
        """
        case = json.loads((folder / "case.json").read_text("utf-8"))
        samples = case.get("samples_per_step") or {}
        steps = case.get("steps_per_mark") or case.get("units_per_call") or {}
        twins, own = (SICK, HEALTHY), case.get("twin_acceptable") or {}
        per_mark = {twin: float(samples.get(twin, 1)) * float(steps.get(twin, 1)) for twin in twins}
        return cls(
            folder,
            case.get("fault", ""),
            tuple(case.get("where", ())),
            _todays(case.get("named_by", ())),
            _todays(case.get("named_if_line", ())),
            {twin: frozenset(_todays((*case.get("acceptable", ()), *own.get(twin, ())))) for twin in twins},
            bool(case.get("spare")),
            case.get("basis") == "mean",
            case.get("step_fn", "").rstrip("@"),
            per_mark,
            case.get("measured") or {},
            tuple(case.get("files", ())),
            tuple(filter(None, case.get("class", "").split(", "))),
            case.get("where_file", ""),
            case.get("basis") == "run",
            not (folder / f"{SICK}.py").exists() and not (folder / SICK).is_dir(),
        )

    @property
    def name(self) -> str:
        """The name of the case: that of its folder."""
        return self.folder.name

    @property
    def twins(self) -> tuple[str, ...]:
        """The scripts that the case has."""
        return (HEALTHY,) if self.trap else (SICK, HEALTHY)

    def written(self, out: Path) -> Path:
        """Write the scripts and their modules into a folder where they can run, and return it."""
        shutil.copytree(self.folder, out, dirs_exist_ok=True)
        return out

    def script(self, twin: str, folder: Path) -> Path:
        """Return a script in a folder where it was written: one that has modules of its own is main.py there."""
        own = folder / twin / "main.py"
        return own if own.exists() else folder / f"{twin}.py"

    def saving(self, times: list[dict[str, dict[str, float]]]) -> float | None:
        """Return the share of the step that the fix saves: the median of the rounds' ratios; None of no rounds."""
        shares = self.shares(times, "mean_ms" if self.by_mean else "median_ms")
        return shares[len(shares) // 2] if shares else None

    def shares(self, times: list[dict[str, dict[str, float]]], figure: str) -> list[float]:
        """Return the share of the step that the fix saves in each round by one of the timer's figures, sorted."""
        return sorted(
            1.0 - self._per_unit(round_[HEALTHY][figure], HEALTHY) / self._per_unit(round_[SICK][figure], SICK)
            for round_ in times
            if all(round_.get(twin, {}).get(figure) for twin in (SICK, HEALTHY))
        )

    def _per_unit(self, ms: float, twin: str) -> float:
        return ms / self.per_mark.get(twin, 1.0)


def _todays(rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that report today what these did when the case was written."""
    return tuple(dict.fromkeys(now for rule in rules for now in SUCCEEDED.get(rule, (rule,))))


def cases(round_folder: Path, names: list[str]) -> Iterator[Case]:
    """Yield the cases of a round, or those whose name contains one of `names`."""
    for path in sorted(round_folder.glob("*/case.json")):
        if not names or any(name in path.parent.name for name in names):
            yield Case.read(path.parent)
