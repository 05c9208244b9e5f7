"""The account of the run and savings of it, as the JSON contract has them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfdoctor.diagnosis import (
    LongStepTime,
    PhaseLine,
    PhaseRow,
    PhaseSegment,
    RunAccount,
    RunSaving,
    RunTogether,
)
from tfdoctor.kinds import Phase
from tfdoctor.verdict import Location

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunContract:
    """Writes them with the numbers and locations of the rest of the contract."""

    number: Callable[[float | None], float | None]
    location: Callable[[Location | None], Object | None]

    def account(self, run: RunAccount | None) -> Object | None:
        """Return the account; None where nothing is known of the run."""
        if run is None:
            return None
        return {
            "total_ms": self.number(run.total_ms),
            "whole": run.whole,
            "missing": run.missing,
            "finished": run.finished,
            "phases": [self._phase(row, run) for row in run.rows],
            "segments": [self._segment(one) for one in run.segments],
            "recurring_ms": self.number(run.recurring_ms),
            **self._steps(run),
            "peak_bytes": self.number(run.peak_bytes),
            "others": list(run.others),
            "notes": list(run.notes),
        }

    def saving(self, saving: RunSaving | None) -> Object | None:
        """Return what a change saves of the run."""
        if saving is None:
            return None
        return {
            "ms": self.number(saving.total.value),
            "share": self.number(saving.share),
            "rated_share": self.number(saving.rated),
            "recurs": saving.recurs.value,
            "each_ms": self.number(saving.each.value),
            "times": saving.times,
            "bound": saving.bound.value,
            "how": saving.how,
            "extrapolated_share": self.number(saving.extrapolated),
        }

    def together(self, together: RunTogether | None) -> Object | None:
        """Return what all changes save of the run."""
        if together is None:
            return None
        after = together.after_ms
        return {
            "ms": self.number(together.total.value),
            "share": self.number(together.share),
            "rules": list(together.rules),
            "bound": together.bound.value,
            "phases_after_ms": {p.value: self.number(after[p]) for p in Phase if p in after},
            "extrapolated_share": self.number(together.extrapolated),
        }

    def _steps(self, run: RunAccount) -> Object:
        return {
            "step_count": run.steps,
            "step_mean_ms": self.number(run.step_mean_ms),
            "step_median_ms": self.number(run.step_median_ms),
            "epoch_count": run.epochs,
            "planned_epochs": run.planned_epochs,
            "for_epochs": run.for_epochs,
            "window_share": self.number(run.window_share),
            "window_steps": run.window_steps,
            "long_steps": self._long(run.long_steps) if run.long_steps else None,
        }

    def _phase(self, row: PhaseRow, run: RunAccount) -> Object:
        part = row.ms / run.total_ms if run.total_ms else None
        return {
            "phase": row.phase.value,
            "ms": self.number(row.ms),
            "share": self.number(part),
            "lines": [self._line(line) for line in row.lines],
        }

    def _line(self, line: PhaseLine) -> Object:
        return {
            "at": self.location(line.at),
            "ms": self.number(line.ms),
            "calls": line.calls,
            "samples": line.samples,
        }

    def _segment(self, one: PhaseSegment) -> Object:
        return {
            "phase": one.phase.value,
            "start_ms": self.number(one.start_ms),
            "end_ms": self.number(one.end_ms),
            "at": self.location(one.at),
        }

    def _long(self, long: LongStepTime) -> Object:
        return {
            "count": long.count,
            "ms": self.number(long.ms),
            "beyond_ms": self.number(long.beyond_ms),
            "unknown_ms": self.number(long.unknown_ms),
            "first_count": long.first,
            "first_beyond_ms": self.number(long.first_beyond_ms),
            "every": long.every,
            "other_cores": self.number(long.other_cores),
            "lines": [self._line(line) for line in long.lines],
        }
