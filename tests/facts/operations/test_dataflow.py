"""What an operation is computed from, and whether only metrics use it."""

import pytest

from tfdoctor.facts.operations.dataflow import Dataflow, Source
from tfdoctor.facts.run.program import KerasPart, Operation, Program

HANDLE = (("resource", ()),)
METRIC = KerasPart("metric", "AUC")


def op(name: str, kind: str, *sources: str, origin: KerasPart | None = None) -> Operation:
    outputs = HANDLE if kind == "handle" else ()
    kind = "Placeholder" if kind == "handle" else kind
    return Operation(name=name, type=kind, sources=sources, origin=origin, outputs=outputs)


@pytest.fixture
def dataflow() -> Dataflow:
    operations = (
        op("x", "Placeholder"),
        op("w", "handle"),
        op("read", "ReadVariableOp", "w"),
        op("limit", "Const"),
        op("range", "Range", "limit", "limit"),
        op("svd", "Svd", "read"),
        op("noise", "RandomUniform", "limit"),
        op("y", "MatMul", "x", "read"),
        op("gradient_tape/y", "MatMul", "y"),
        op("decoded", "CTCBeamSearchDecoder", "y"),
        op("sum", "Sum", "decoded", origin=METRIC),
        op("numpy", "EagerPyFunc", "limit"),
        op("truncated", "StatelessTruncatedNormalV2", "limit"),
        op("iterator", "handle"),
        op("next", "IteratorGetNext", "iterator"),
        op("lost", "Mul", "", "limit"),
        op("average", "AssignVariableOp", "w", "range"),
        op("rows", "Gather", "y"),
        op("looked at", "Mean", "rows", origin=METRIC),
        op("lazy", "ResourceSparseApplyAdagradV2", "w", "rows"),
    )
    return Dataflow(Program(operations=operations))


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("range", ()),
        ("svd", (Source.VARIABLES,)),
        ("noise", (Source.RANDOM,)),
        ("y", (Source.BATCH, Source.VARIABLES)),
        ("lost", (Source.UNKNOWN,)),
        ("numpy", (Source.UNKNOWN,)),
        ("truncated", (Source.RANDOM,)),
        ("next", (Source.BATCH,)),
        ("absent", (Source.UNKNOWN,)),
    ],
)
def test_sources(dataflow: Dataflow, name: str, sources: tuple[Source, ...]) -> None:
    assert dataflow.sources(name) == frozenset(sources)


def test_an_update_feeds_no_gradient(dataflow: Dataflow) -> None:
    assert dataflow.feeds_gradients("y")
    assert not dataflow.feeds_gradients("average")


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("sum", True),
        ("decoded", True),
        ("y", False),
        ("gradient_tape/y", False),
        ("range", False),
        ("rows", False),
    ],  # a sparse update is an update
)
def test_what_a_gradient_or_a_variable_takes_is_not_for_metrics_only(
    dataflow: Dataflow, name: str, *, only: bool
) -> None:
    assert dataflow.only_metrics(name) is only
