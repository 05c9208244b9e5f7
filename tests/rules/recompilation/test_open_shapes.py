"""Which dimensions of the batches may vary, by the element_spec that was recorded."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Dataset, DatasetParameters, Program
from tfdoctor.rules.recompilation.open_shapes import OpenShapes
from tfdoctor.terms.verdict import Location

LINE = Location("train.py", 3)


def tensor(shape: str) -> str:
    return f"TensorSpec(shape={shape}, dtype=tf.int32, name=None)"


def fed(element: str, *more: Dataset, **parameters: Any) -> Program:
    given = DatasetParameters(**parameters)
    batch = Dataset(id=1, kind="_BatchDataset", parameters=given, element=element, at=LINE)
    last = Dataset(id=2, kind="_PrefetchDataset", inputs=(1,), element=element)
    return Program(datasets=(batch, last, *more), feeds=2)


@pytest.mark.parametrize(
    ("element", "is_open"),
    [
        (tensor("(None, 20)"), (True, False)),
        (f"({tensor('(None, 20)')}, {tensor('(None,)')})", (True, False)),
        (f"({tensor('(None, None)')}, {tensor('(None,)')})", (True, True)),
        (f"({tensor('(16, None)')}, {tensor('(16,)')})", (False, True)),
        (tensor("(16, 20)"), (False, False)),
    ],
)
def test_a_length_is_no_size_of_a_batch(element: str, is_open: tuple[bool, bool]) -> None:
    found = OpenShapes.measure(fed(element, drop_remainder=False))
    assert (found.size, found.lengths) == is_open


def test_the_line_is_that_of_the_batch_that_feeds_the_run() -> None:
    element = tensor("(None, 20)")
    other = Dataset(id=7, kind="_BatchDataset", parameters=DatasetParameters(drop_remainder=False))
    assert OpenShapes.measure(fed(element, other, drop_remainder=False)).at == LINE
    assert OpenShapes.measure(fed(element, other, drop_remainder=True)).at is None


@pytest.mark.parametrize(
    "element", ["", tensor("<unknown>"), "RaggedTensorSpec(TensorShape([None]), tf.int32, 0)",
    f"({tensor('(None, 2)')}, SparseTensorSpec(TensorShape([2, 3]), tf.int32))"],
)  # fmt: skip
def test_shapes_that_are_not_told_are_unknown(element: str) -> None:
    with pytest.raises(Unavailable, match="were not recorded"):
        OpenShapes.measure(fed(element))


def test_a_run_without_a_pipeline_has_none() -> None:
    with pytest.raises(Unavailable, match="no recorded tf"):
        OpenShapes.measure(Program())
