"""The trials as the JSON contract has them."""

from collections.abc import Callable
from typing import Any

from tfdoctor.diagnosis import (
    Beside,
    Measured,
    RunSaving,
    Saving,
    TrainingMatch,
    Trial,
    Trials,
)

Object = dict[str, Any]
Number = Callable[[float | None], float | None]
"""Returns a float with the digits of the contract."""


def contract(
    trials: Trials,
    number: Number,
    saving: Callable[[Saving | None], Any],
    run_saving: Callable[[RunSaving | None], Any],
) -> Object:
    """Return what `tfdoctor try` measured."""
    return {
        "as_is_ms": number(trials.as_is_ms),
        "as_is_whole_ms": number(trials.as_is_whole_ms),
        **({"as_is_run_ms": number(trials.as_is_run_ms)} if trials.as_is_run_ms else {}),
        "as_is_against_itself": measured(trials.as_is, number),
        "rounds": trials.rounds,
        "runs": trials.runs,
        "minutes": number(trials.minutes),
        "other_programs_share": number(trials.foreign),
        "writes_thrown_away": trials.layer,
        "interrupted": trials.ended_early,
        "together": trials.together,
        "needed_minutes": number(trials.needed_minutes),
        "not_tried": [{"name": name, "why": why} for name, why in trials.not_tried],
        "variants": [
            _row(row, number, saving) | _of_run(row, number, run_saving) for row in trials.rows
        ],
    }


def measured(one: Measured | None, number: Number) -> Object | None:
    """Return a measured saving; shares of the step."""
    if one is None:
        return None
    return {
        "share": number(one.share),
        "low": number(one.low),
        "high": number(one.high),
        "difference": one.difference.value,
        "rounds": [number(share) for share in one.rounds],
        "why": one.why,
        "dropped": one.dropped,
        **({"of_run": True} if one.of_run else {}),
    }


def _row(row: Trial, number: Number, saving: Callable[[Saving | None], Any]) -> Object:
    return {
        "name": row.name,
        "parts": list(row.parts),
        "action": row.action,
        "rules": list(row.rules),
        "promised": saving(row.promised),
        "measured": measured(row.measured, number),
        "examples": number(row.examples),
        "step_ms": number(row.step_ms),
        "whole_ms": number(row.whole_ms),
        "training": _training(row.training, number),
        "runs": row.runs,
        "missing": row.missing,
        "kept": row.kept,
        "beside": _beside(row.beside, number),
    }


def _of_run(row: Trial, number: Number, run_saving: Callable[[RunSaving | None], Any]) -> Object:
    """Return what a change that was tried by whole runs has besides."""
    if row.promised_run is None:
        return {}
    return {"promised_run": run_saving(row.promised_run), "run_ms": number(row.run_ms)}


def _beside(one: Beside | None, number: Number) -> Object | None:
    if one is None:
        return None
    return {
        "others": list(one.others),
        "instead": one.instead,
        "measured": measured(one.measured, number),
    }


def _training(training: TrainingMatch | None, number: Number) -> Object | None:
    if training is None:
        return None
    return {
        "state": training.state.value,
        "step": training.step,
        "losses": [[step, number(a), number(b)] for step, a, b in training.losses],
        "apart": number(training.apart),
        "usual": number(training.usual),
        "own": number(training.own),
        "why": training.why,
    }
