"""Changes of the model or of the batch in a trial: only by name, per example, and kept only when that is asked."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.edits.kit import finding, recorded
from tests.report.diagnoses import tried
from tests.trial.made import Machine, join, row, stage_of
from tfdoctor.diagnosis.trials import TrainingState, Trials
from tfdoctor.edits import edited
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.typed import read
from tfdoctor.terms.verdict import LayerWidth, Location, Remedy
from tfdoctor.trial import proposals, trial
from tfdoctor.trial.program import NotTried, Variant

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis

TEXT = """from keras import layers

data = data.batch(32)
a = layers.Dense(130)
b = layers.Dense(WIDE)
"""

TWICE, FOUR_TIMES = (f"batch \N{MULTIPLICATION SIGN} {factor}" for factor in (2, 4))

BATCHES = [
    {"id": 0, "class": "MapDataset"},
    {"id": 1, "class": "BatchDataset", "inputs": [0], "parameters": {"batch_size": 32}},
    {"id": 2, "class": "PrefetchDataset", "inputs": [1]},
]


def remedy(line: int) -> Remedy:
    return Remedy(
        f"Choose 128 instead of 130 in dense_{line}", at=Location("train.py", line), width=LayerWidth(130, 128)
    )


def recording(folder: Path, **program: Any) -> Recording:
    script = folder / "train.py"
    script.write_text(TEXT)
    made = recorded(folder, ["train.py"])
    assert made.program is not None
    batches = [dict(stage) for stage in BATCHES]
    batches[1]["at"] = [str(script), 3]
    data = {
        "sources": dict(made.program.sources),
        "datasets": batches,
        "feeds": 2,
        "run": {"batch_size": 32},
        **program,
    }
    faults: list[str] = []
    record = read(ProgramRecord, data, faults)
    assert not faults
    return replace(made, program=record)


def proposed(of: Recording, *only: str, keep: bool = False) -> tuple[list[Variant], list[NotTried]]:
    results = (finding("small-batch"), finding("unaligned-dimension", remedy(4)))
    diagnosis: Diagnosis = replace(tried(), results=results)
    return proposals.changes_of_model(of, diagnosis, only, keep=keep)


def test_without_their_names_they_are_not_tried(tmp_path: Path) -> None:
    variants, missing = proposed(recording(tmp_path))
    assert variants == []
    assert [one.name for one in missing] == ["a larger batch", "unaligned-dimension"]
    assert "--only small-batch" in missing[0].why
    assert "--only unaligned-dimension" in missing[1].why
    assert proposed(recording(tmp_path), "prefetch") == ([], [])


def test_a_batch_is_twice_and_four_times_as_large(tmp_path: Path) -> None:
    variants, _ = proposed(recording(tmp_path), "small-batch")
    names = {one.name: one for one in variants}
    assert list(names) == [TWICE, FOUR_TIMES]
    for factor, variant in zip((2, 4), names.values(), strict=True):
        (text,) = variant.files.values()
        assert f"data.batch({32 * factor})" in text.decode()
        assert variant.examples == factor
        assert variant.action == f"Use {32 * factor} examples a batch instead of 32"
        assert variant.model == f"a step has {32 * factor} examples instead of 32"
        assert not variant.may_keep
    assert all(one.may_keep for one in proposed(recording(tmp_path), "small-batch", keep=True)[0])


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ({"feeds": None}, "does not show where"),
        ({"run": {"batch_size": 16}}, "does not show where"),
        ({"datasets": [BATCHES[0] | {"parameters": {"batch_size": 2}}, *BATCHES[1:]]}, "several stages"),
        ({"input_kind": "arrays"}, "does not show where"),
    ],
)
def test_a_batch_of_unknown_origin_says_so(tmp_path: Path, program: Mapping[str, object], why: str) -> None:
    variants, missing = proposed(recording(tmp_path, **program), "small-batch")
    assert variants == []
    assert [one.name for one in missing] == [TWICE, FOUR_TIMES]
    assert why in missing[0].why


def test_a_width_is_the_advised_one(tmp_path: Path) -> None:
    ((variant,), _) = proposed(recording(tmp_path), "unaligned-dimension")
    (text,) = variant.files.values()
    assert text.decode() == TEXT.replace("130", "128")
    assert variant.examples == 1
    assert variant.action == "Choose 128 instead of 130 in dense_4"


def test_widths_that_the_file_does_not_show_promise_nothing(tmp_path: Path) -> None:
    of = recording(tmp_path)
    saving = next(result.saving for result in tried().results if result.saving)
    both = replace(finding("unaligned-dimension", remedy(4), remedy(5)), saving=saving)
    one = replace(both, outcome=finding("unaligned-dimension", remedy(4)).outcome)
    for result, promised in ((both, None), (one, saving)):
        diagnosis = replace(tried(), results=(result,))
        variants, _ = proposals.changes_of_model(of, diagnosis, ["unaligned-dimension"], keep=False)
        assert [variant.promised for variant in variants] == [promised]


def test_the_patch_of_the_report_has_none_of_them(tmp_path: Path) -> None:
    of = recording(tmp_path)
    results = (finding("small-batch", Remedy("Use a larger batch")), finding("unaligned-dimension", remedy(4)))
    _, patch = edited(of, results, None)
    assert patch == b""


def test_two_changes_of_a_file_are_made_together(tmp_path: Path) -> None:
    of = recording(tmp_path)
    (twice, _), _ = proposed(of, "small-batch")
    ((narrower,), _) = proposed(of, "unaligned-dimension")
    both = proposals.joined(of, [twice, narrower], {})
    (text,) = both.files.values()
    assert text.decode() == TEXT.replace("130", "128").replace("batch(32)", "batch(64)")
    assert both.examples == 2
    assert both.model == f"{twice.model} and {narrower.model}"


def conduct(*, may_keep: bool) -> tuple[Trials, list[str]]:
    """Try a batch twice as large, whose step takes 1.2 times as long."""
    variant = Variant("larger", model="a step has more examples", examples=Fraction(2), may_keep=may_keep)
    machine = Machine({"larger": 1.2}, digests={"larger": "other"}, examples={"larger": 64})
    plan = trial.Agenda([variant], join, 60.0)
    trials, kept = trial.conduct(stage_of(machine.run), plan)
    return trials, [one.name for one in kept]


def test_it_is_measured_per_example_compared_with_nothing_and_kept_when_asked() -> None:
    trials, kept = conduct(may_keep=False)
    larger = row(trials, "larger")
    assert larger.measured is not None
    assert larger.measured.share == pytest.approx(0.4, abs=0.03)
    assert larger.step_ms == pytest.approx(12.0, rel=0.05)
    assert larger.examples == 2
    assert larger.training is not None
    assert larger.training.state is TrainingState.CHANGED
    assert kept == []
    assert conduct(may_keep=True)[1] == ["larger"]
