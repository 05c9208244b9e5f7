"""FLOPs of products from shapes, set against loops that count; unknown sizes stay unknown."""

from itertools import product as every
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.operations.shapes import einsum_flops, flops_of, shared_dimension_flops
from tfdoctor.facts.run.program import Attributes, Operation, Program, RunSettings, Shape

PROGRAM = Program(settings=RunSettings(batch_size=16))
SIZE = st.integers(1, 6)


def flops(kind: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> float | None:
    tensors = tuple(("float32", shape) for shape in inputs)
    results = tuple(("float32", shape) for shape in outputs)
    one = Operation(name="x", type=kind, inputs=tensors, outputs=results, attrs=Attributes(**attrs))
    return flops_of(kind, one, PROGRAM)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attrs", "expected"),
    [
        ("MatMul", [(16, 8), (8, 4)], [(16, 4)], {}, 2 * 16 * 8 * 4),
        ("MatMul", [(8, 16), (8, 4)], [(16, 4)], {"transpose_a": True}, 2 * 16 * 8 * 4),
        ("MatMul", [(None, 8), (8, 4)], [(None, 4)], {}, 2 * 16 * 8 * 4),
        ("BatchMatMulV2", [(3, 5, 7), (3, 7, 2)], [(3, 5, 2)], {}, 2 * 3 * 5 * 7 * 2),
        ("BatchMatMulV2", [(3, 7, 5), (3, 7, 2)], [(3, 5, 2)], {"adj_x": True}, 2 * 3 * 5 * 7 * 2),
        ("BatchMatMulV3", [(3, 5, 7), (7, 2)], [(3, 5, 2)], {}, 2 * 3 * 5 * 7 * 2),
        ("Einsum", [(2, 3, 4), (4, 5, 6)], [], {"equation": "abc,cde->abde"}, 2 * 2 * 3 * 4 * 5 * 6),
        ("Conv2D", [(2, 8, 8, 3), (3, 3, 3, 5)], [(2, 4, 4, 5)], {}, 2 * 2 * 16 * 9 * 3 * 5),
        ("Conv2D", [(2, 8, 8, 6), (3, 3, 2, 9)], [(2, 8, 8, 9)], {}, 2 * 2 * 64 * 9 * 2 * 9),
        ("Conv2D", [(2, 3, 8, 8), (3, 3, 3, 5)], [(2, 5, 4, 4)], {"data_format": "NCHW"},
         2 * 2 * 16 * 9 * 3 * 5),
        ("Conv3D", [(1, 4, 4, 4, 2), (3, 3, 3, 2, 5)], [(1, 4, 4, 4, 5)], {}, 2 * 64 * 27 * 2 * 5),
        ("Conv2DBackpropInput", [(4,), (3, 3, 3, 5), (2, 4, 4, 5)], [(2, 8, 8, 3)], {},
         2 * 2 * 16 * 9 * 3 * 5),
        ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [(3, 3, 3, 5)], {},
         2 * 2 * 16 * 9 * 3 * 5),
        ("DepthwiseConv2dNative", [(2, 8, 8, 6), (3, 3, 6, 2)], [(2, 8, 8, 12)], {},
         2 * 2 * 64 * 12 * 9),
        ("DepthwiseConv2dNativeBackpropFilter", [(2, 8, 8, 6), (4,), (2, 8, 8, 6)], [(3, 3, 6, 1)], {},
         2 * 2 * 64 * 6 * 9),
        ("Conv2D", [(2, 8, 8, 3), (3, 3, 3, 5)], [], {}, None),
        ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [], {}, None),
        ("MatMul", [(16, 8)], [(16, 4)], {}, None),
        ("MatMul", [(16, None), (8, 4)], [(16, 4)], {}, None),
        ("Relu", [(16, 8)], [(16, 8)], {}, None),
    ],
)  # fmt: skip
def test_products_of_all_kinds(
    kind: str, inputs: list[Shape], outputs: list[Shape], attrs: dict[str, object], expected: object
) -> None:
    assert flops(kind, inputs, outputs, **attrs) == expected


@given(st.lists(SIZE, min_size=1, max_size=5, unique=True), st.data())
def test_an_einsum_multiplies_once_for_each_value_of_all_its_indices(sizes: list[int], data: st.DataObject) -> None:
    letters = "abcde"[: len(sizes)]
    chosen = st.lists(st.sampled_from(letters), min_size=1, unique=True)
    left, right = data.draw(chosen), data.draw(chosen)
    used = dict(zip(letters, sizes, strict=True))
    count = sum(1 for _ in every(*(range(used[one]) for one in {*left, *right})))
    equation = f"{''.join(left)},{''.join(right)}->{''.join(left[:1])}"
    shapes: list[tuple[int, ...] | None] = [tuple(used[one] for one in left), tuple(used[one] for one in right)]
    assert einsum_flops(equation, shapes) == 2 * count


def test_an_einsums_ellipsis_stands_for_batch_dimensions() -> None:
    assert einsum_flops("...ij,...jk->...ik", [(7, 2, 3), (7, 3, 5)]) == 2 * 7 * 2 * 3 * 5
    assert einsum_flops("...ij,jk->...ik", [(7, 8, 2, 3), (3, 5)]) == 2 * 7 * 8 * 2 * 3 * 5


def test_an_einsum_that_multiplies_nothing_or_is_not_understood() -> None:
    assert einsum_flops("ab->ba", [(2, 3)]) == 0
    assert einsum_flops("a,b,c->abc", [(2,), (3,), (4,)]) is None
    assert einsum_flops("ab,bc->ac", [(2, 3), None]) is None
    assert einsum_flops("ab,bc->ac", [(2, 3, 4), (3, 4)]) is None
    assert einsum_flops("", [(2, 3), (3, 4)]) is None


@given(st.tuples(SIZE, SIZE, SIZE), st.tuples(st.booleans(), st.booleans()))
def test_the_factors_alone_tell_the_flops_or_nothing_does(
    sizes: tuple[int, int, int], turned: tuple[bool, bool]
) -> None:
    m, k, n = sizes
    a, b = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    told = shared_dimension_flops(a, b)
    assert told in (None, 2 * prod(sizes))
    assert told is not None or len({m, k, n}) < 3


def test_factors_of_different_batches_tell_nothing() -> None:
    assert shared_dimension_flops((3, 5, 7), (1, 7, 2)) is None
    assert shared_dimension_flops((3, 5, 7), (3, 7, 2)) == 2 * 3 * 5 * 7 * 2
