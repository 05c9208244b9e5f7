"""Findings that stand in a relation to each other: what of them goes into one patch."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.edits.editing import git_apply
from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.diagnosis import Order, Relation, Relationship, Result, Saving
from tfdoctor.edits import edited
from tfdoctor.units import ms
from tfdoctor.verdict import Bound

TEXT = """\
import tensorflow as tf

d = tf.data.Dataset.range(8).map(f)
d = d.batch(2)
model.compile("adam", "mse")
model.fit(d)
"""

MAP = ("parallel-map", remedy("parallel-map", line=3))
BATCH = ("drop-remainder", remedy("drop-remainder", line=4))
JIT = ("jit-compile", remedy("jit-compile", line=5))
STEPS = remedy("steps-per-execution", line=5, code="steps_per_execution=8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TEXT)
    return tmp_path


def missing(results: tuple[Result, ...]) -> list[str]:
    return [edit.missing for result in results for edit in result.edits]


def patched(folder: Path, patch: bytes) -> str:
    git_apply(patch, folder)
    return (folder / "train.py").read_text()


def order(kind: Relationship, rule: str, *others: str) -> Order:
    return Order(relations=(Relation(kind, rule, others),))


def test_edits_of_several_findings_are_one_patch(folder: Path) -> None:
    found = [finding(*MAP), finding(*BATCH), finding(*JIT)]
    results, patch = edited(recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, None)
    assert missing(results) == ["", "", ""]
    assert patched(folder, patch) == TEXT.replace(
        "map(f)", "map(f, num_parallel_calls=tf.data.AUTOTUNE)"
    ).replace("batch(2)", "batch(2, drop_remainder=True)").replace(
        '"mse")', '"mse", jit_compile=True)'
    )


@pytest.mark.parametrize("first", ["jit-compile", "steps-per-execution"])
def test_what_excludes_another_is_not_beside_it(folder: Path, first: str) -> None:
    both = [finding(*JIT), finding("steps-per-execution", STEPS)]
    found = sorted(both, key=lambda result: result.rule.name != first)
    excluded = order(Relationship.INSTEAD, "jit-compile", "steps-per-execution")
    results, patch = edited(
        recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, excluded
    )
    assert missing(results) == ["", f"it excludes that of {first}, which is in the patch"]
    assert (b"jit_compile" in patch) == (first == "jit-compile")


def test_what_saves_nothing_beside_the_others_is_left_out(folder: Path) -> None:
    found = [finding(*MAP), finding(*BATCH), finding(*JIT)]
    unneeded = order(Relationship.UNNEEDED, "parallel-map", "drop-remainder", "jit-compile")
    results, patch = edited(
        recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, unneeded
    )
    assert [result.rule.name for result in results] == [name for name, _ in (MAP, BATCH, JIT)]
    assert missing(results) == [
        "it saves nothing more beside drop-remainder and jit-compile",
        "",
        "",
    ]
    assert b"num_parallel_calls" not in patch


def after(result: Result, *others: str) -> Result:
    """Return a finding whose change saves nothing before others are followed."""
    saving = Saving(per_step=ms(0.0), share=0.0, bound=Bound.EXPECTED, how="", after=others)
    return replace(result, saving=saving)


def test_what_saves_nothing_before_others_is_left_out_without_them(folder: Path) -> None:
    found = [after(finding(*JIT), "parallel-map"), finding("parallel-map", remedy("", line=3))]
    results, patch = edited(recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, None)
    said = "it saves nothing before parallel-map, which is not in the patch"
    assert missing(results) == [said, "it is a change to make by hand"]
    assert results[0].edits[0].after.endswith("jit_compile=True)")
    assert patch == b""


def test_what_saves_something_after_others_is_in_the_patch_with_them(folder: Path) -> None:
    found = [after(finding(*JIT), "parallel-map"), finding(*MAP)]
    results, _ = edited(recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, None)
    assert missing(results) == ["", ""]


def test_what_the_others_would_save_counts_only_where_they_are_in_the_patch(folder: Path) -> None:
    found = [finding(*MAP), finding("cost", remedy("", line=4))]
    unneeded = order(Relationship.UNNEEDED, "parallel-map", "cost")
    results, _ = edited(recorded(folder, ["train.py"], {"steps_per_epoch": 80}), found, unneeded)
    assert missing(results) == ["", "it is a change to make by hand"]
