"""What an operation is computed from, and whether only metrics use it."""

import pytest

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.dependence import Dependence, Source
from tfdoctor.facts.run.program import KerasPart, Operation, Program

HANDLE = (("resource", ()),)
METRIC = KerasPart("metric", "AUC")


def op(name: str, kind: str, *sources: str, origin: KerasPart | None = None) -> Operation:
    outputs = HANDLE if kind == "handle" else ()
    kind = "Placeholder" if kind == "handle" else kind
    return Operation(name=name, type=kind, sources=sources, origin=origin, outputs=outputs)


@pytest.fixture
def dependence() -> Dependence:
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
        op("lost", "Mul", "", "limit"),
        op("average", "AssignVariableOp", "w", "range"),
    )
    return Dependence.measure(Dataflow(Program(operations=operations)))


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("range", ()),
        ("svd", (Source.VARIABLES,)),
        ("noise", (Source.RANDOM,)),
        ("y", (Source.BATCH, Source.VARIABLES)),
        ("lost", (Source.UNKNOWN,)),
        ("numpy", (Source.UNKNOWN,)),
        ("absent", (Source.UNKNOWN,)),
    ],
)
def test_sources(dependence: Dependence, name: str, sources: tuple[Source, ...]) -> None:
    assert dependence.sources(name) == frozenset(sources)


def test_an_update_feeds_no_gradient(dependence: Dependence) -> None:
    assert dependence.feeds_gradients("y")
    assert not dependence.feeds_gradients("average")


@pytest.mark.parametrize(
    ("name", "only"), [("sum", True), ("decoded", True), ("y", False), ("gradient_tape/y", False), ("range", False)]
)
def test_what_a_gradient_or_a_variable_takes_is_not_for_metrics_only(
    dependence: Dependence, name: str, *, only: bool
) -> None:
    assert dependence.only_metrics(name) is only
