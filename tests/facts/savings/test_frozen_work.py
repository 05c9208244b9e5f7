"""What depends on the examples alone: through frozen weights, and not through trained or random ones."""

from typing import Any

import pytest

from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.run.program import Dataset, Layer, Operation, Program
from tfdoctor.facts.savings.layer_work import frozen_reads, repeated, results_bytes, why_different

FLOAT = ("float32", (8, 4))


def op(name: str, kind: str, *sources: str, layer: str = "") -> Operation:
    return Operation(name=name, type=kind, outputs=(FLOAT,), sources=sources, layer=layer)


def graph(*more: Operation, before: str = "x", trainable: bool = False) -> Dataflow:
    """A base of one product on what ``before`` makes, and a trained product behind it."""
    operations = (
        op("x", "Placeholder"),
        op("w", "Placeholder", layer="base"),
        op("v", "Placeholder", layer="head"),
        op("resize", "ResizeBilinear", "x"),
        op("drop", "StatelessRandomUniformV2", "x"),
        op("base/read", "ReadVariableOp", "w", layer="base"),
        op("head/read", "ReadVariableOp", "v", layer="head"),
        op("head/first", "MatMul", "x", "head/read", layer="head"),
        op("base/mul", "MatMul", before, "base/read", layer="base"),
        op("base/relu", "Relu", "base/mul", layer="base"),
        op("head/mul", "MatMul", "base/relu", "head/read", layer="head"),
        op("sgd", "AssignSubVariableOp", "v", "head/mul"),
        *more,
    )
    layers = (
        Layer(name="base", kind="Dense", trainable=trainable),
        Layer(name="head", kind="Dense", trainable=True),
    )
    return Dataflow(Program(operations, layers))


def same(found: Dataflow) -> frozenset[str]:
    return repeated(found, frozen_reads(found))


def test_the_frozen_part_and_what_prepares_its_input() -> None:
    found = graph(before="resize")
    names = same(found)
    assert {"resize", "base/mul", "base/relu"} <= names
    assert not {"head/mul", "head/first", "sgd", "x"} & names
    assert results_bytes(found, names) == 8 * 4 * 4


@pytest.mark.parametrize("before", ["drop", "head/first"])
def test_random_and_trained_operations_before_it(before: str) -> None:
    """Trap: a perceptual loss on what a trained network makes."""
    assert not {"base/mul", "base/relu"} & same(graph(before=before))


def test_a_layer_that_may_be_trained_is_not_frozen() -> None:
    """Trap: the discriminator in the generator's step trains in a step of its own."""
    assert not frozen_reads(graph(trainable=True))


def test_a_layer_that_another_graph_changes_is_not_frozen() -> None:
    """Trap: a teacher that is a moving average of the student."""
    assert not frozen_reads(graph(op("ema", "AssignVariableOp", "w", "base/relu")))


def test_what_an_opaque_operation_does_is_unknown() -> None:
    call = op("call", "StatefulPartitionedCall", "base/relu")
    assert "call" not in same(graph(call))


def flipped(*kinds: str, cardinality: int | None = 100) -> str:
    """Return why examples differ in a pipeline of these stages, from the source; a Map flips at random."""
    random: dict[str, Any] = {
        "function": "flip",
        "types": frozenset(["RandomUniform"]),
        "stateful": frozenset[str](),
    }
    chain = [
        Dataset(
            id=at,
            kind=f"_{kind}Dataset",
            inputs=(at - 1,) if at else (),
            cardinality=cardinality,
            **(random if kind == "Map" else {}),
        )
        for at, kind in enumerate(kinds)
    ]
    return why_different(DatasetProperties(tuple(reversed(chain)), 4.0))


@pytest.mark.parametrize("more", [(), ("Shuffle",), ("Repeat",)])
def test_a_cache_after_random_draws_keeps_them(more: tuple[str, ...]) -> None:
    why = flipped("TensorSlice", "Map", "Cache", *more)
    assert "in each pass" in why
    assert "only cache() after it" in why


@pytest.mark.parametrize("kinds", [("TensorSlice", "Map"), ("TensorSlice", "Cache", "Map")])
def test_draws_that_no_cache_keeps_differ(kinds: tuple[str, ...]) -> None:
    assert flipped(*kinds) == "flip in the pipeline draws random numbers in each pass"


def test_a_cache_that_is_never_complete_keeps_nothing() -> None:
    """Trap: it comes after an endless repeat()."""
    why = flipped("TensorSlice", "Map", "Repeat", "Cache", cardinality=-1)
    assert why == "flip in the pipeline draws random numbers in each pass"
