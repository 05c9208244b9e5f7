"""Opens what is to be compared: recordings and traces, which are diagnosed, and stored reports of such."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.recording import Recording
from tfdoctor.stored.files import open_report, report_at
from tfdoctor.stored.report import finished
from tfdoctor.terms.errors import InputError

Examine = Callable[[Recording, str], Diagnosis]  # Diagnoses a recording under a title


def load(path: Path, examine: Examine, rules: Sequence[Rule]) -> Diagnosis:
    """Return the report of a recording, a trace or a file `report.json`, with the results of these rules alone.

    A recording is compared by what its report stores, so that both give the same figures.

    Raises:
        InputError: there is none of these, or it is damaged.
    """
    if stored := report_at(path):
        report = open_report(stored, rules)
    else:
        recording = Recording.open(path)
        report = finished(examine(recording, recording.title(path)))
    names = {rule.name for rule in rules}
    results = tuple(result for result in report.results if result.rule.name in names)
    return replace(report, results=results)


def must_differ(paths: Sequence[Path]) -> None:
    """Check that no run is given twice: it would count as two.

    Raises:
        InputError: one is.
    """
    places = [path.resolve() for path in paths]
    twice = next((path for path in places if places.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice: name different runs.")
