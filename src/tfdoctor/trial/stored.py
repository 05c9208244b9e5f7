"""The last trial of a recording, in its folder: `tfdoctor report` shows what `tfdoctor try` measured."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis, Trials
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import content
from tfdoctor.terms.json_form import Json, converted
from tfdoctor.terms.replacement import replace_file, writing

FILE = "trials.json"
ELSEWHERE = "copy the recording elsewhere"  # What helps where its folder takes no file
# Names of the fields of a trial by those of its file, and of a promised saving in files of before 29 November 2026.
NAMES = dict(zip(Trials.__struct_fields__, Trials.__struct_encode_fields__, strict=True))
OLD_NAMES = {
    "per_step": "ms_per_step", "total": "ms", "rated": "rated_share", "each": "each_ms",
    "extrapolated": "extrapolated_share",
}  # fmt: skip


def keep(trials: Trials | None, recording: Recording) -> bool:
    """Write a trial into the folder of its recording; return False where an earlier one stays.

    It stays where it has figures and this one has none.

    Raises:
        OutputError: the folder cannot be written.
    """
    if trials is None or recording.root is None:
        return True
    if not _has_figures(trials) and _has_figures(_last_or_none(recording.root / FILE)):
        return False
    with writing(recording.root, ELSEWHERE):
        replace_file(recording.root / FILE, json.dumps(asdict(trials), indent=1) + "\n")
    return True


def _has_figures(trials: Trials | None) -> bool:
    return trials is not None and any(row.measured for row in trials.rows)


def with_last(diagnosis: Diagnosis, recording: Recording) -> Diagnosis:
    """Return the diagnosis with what the last trial of the recording measured; unchanged without a trial.

    Raises:
        InputError: the trial's file is damaged: a trial without some of its figures is worse than none.
    """
    path = recording.root / FILE if recording.root else None
    if path is None or not path.is_file():
        return diagnosis
    from tfdoctor.trial.trial import with_measured  # noqa: PLC0415 - most recordings have no trial

    trials = _last_or_none(path)
    if trials is None:
        raise InputError(f"{path} is damaged: remove it, or run `tfdoctor try` again.")
    return with_measured(diagnosis, trials)


def _last_or_none(path: Path) -> Trials | None:
    """Return the trial in a file; None where there is none that can be read."""
    trials: Trials | None = None
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        data = json.loads(content(path))
        not_tried = [{"name": name, "why": why} for name, why in data.get("not_tried", ())]
        trials = converted({**_as_in_reports(data, NAMES), "not_tried": not_tried}, Trials)
    return trials


def _as_in_reports(value: Json, names: Mapping[str, str]) -> Json:
    """Return a value of the file as it stands in a report: one with its unit, as in older files, is a number."""
    if isinstance(value, list):
        return [_as_in_reports(item, OLD_NAMES) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"value", "unit"}:
        return value["value"]
    return {names.get(name, name): _as_in_reports(item, OLD_NAMES) for name, item in value.items()}
