"""Arrays in HLO text, and how they lie in a TPU's memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.tpu.shapes import Array, arrays, convolves_each_alone
from tfdoctor.trace.hlo import Shape

COPY = (
    "%copy-start.1 = (f32[5,1024,256]{2,1,0:T(8,128)S(5)}, f32[5,1024,256]{2,1,0:T(8,128)}, u32[]{:S(2)}) "
    "copy-start(f32[5,1024,256]{2,1,0:T(8,128)} %add.2)"
)


def test_results_come_before_operands_with_their_memory() -> None:
    found = arrays(COPY)
    assert [array.dtype for array in found] == ["f32", "f32", "u32", "f32"]
    assert [array.space for array in found] == [5, 0, 2, 0]
    assert found[0].dims == (5, 1024, 256)
    assert found[0].tile == (8, 128)
    assert found[0].nbytes == 5 * 1024 * 256 * 4


@pytest.mark.parametrize(
    ("text", "width", "stored"),
    [
        ("bf16[32,144]{1,0:T(8,128)(2,1)}", 144, 32 * 256),
        ("bf16[32,144]{0,1:T(8,128)(2,1)}", 32, 144 * 128),  # the other dimension in the lanes
        ("bf16[30,144]{1,0:T(16,128)(2,1)}", 144, 32 * 256),
        ("f32[3,5,7,130]{3,2,1,0:T(8,128)}", 130, 3 * 5 * 8 * 256),
        ("f32[100]{0:T(1024)}", 100, 1024),
        ("f32[100]{0:T(8,128)}", 100, 8 * 128),
        ("f32[32,144]{1,0}", 144, 32 * 144),  # no tile: nothing is known to be padded
        ("f32[32,144]", 144, 32 * 144),
        ("f32[]", None, 1),
    ],
)
def test_widths_and_what_is_stored(text: str, width: int | None, stored: int) -> None:
    (array,) = arrays(text)
    assert array.width == width
    assert array.stored == stored
    assert array.useful == pytest.approx(array_size(array) / stored)


def array_size(array: Array) -> int:
    size = 1
    for dimension in array.dims:
        size *= dimension
    return size


@pytest.mark.parametrize(("dtype", "nbytes"), [("bf16", 8), ("f32", 16), ("s4", 2), ("pred", 4), ("f8e4m3fn", 4)])
def test_bytes_by_type(dtype: str, nbytes: int) -> None:
    assert arrays(f"{dtype}[4]{{0}}")[0].nbytes == nbytes


def test_text_without_arrays_has_none() -> None:
    assert arrays("%while.1 = () while(%tuple)") == ()
    assert arrays("") == ()


@given(st.lists(st.integers(1, 300), min_size=1, max_size=4))
def test_no_array_is_stored_in_less_than_it_holds(dims: list[int]) -> None:
    order = tuple(reversed(range(len(dims))))
    array = Array.of(Shape("f32", tuple(dims), order, ((8, 128),)))
    assert array.stored >= array_size(array)
    assert array.stored % 128 == 0
    assert 0 < array.useful <= 1


CONVOLUTION = (
    "%convolution.1 = {result} convolution(bf16[8,32,32,144]{{3,2,1,0}} %p.0, bf16[3,3,1,144]{{3,2,1,0}} %p.1), "
    "window={{size=3x3}}, dim_labels=b01f_01io->b01f{groups}"
)


@pytest.mark.parametrize(
    ("features", "groups", "alone"),
    [
        (144, ", feature_group_count=144", True),
        (144, ", batch_group_count=144", True),
        (144, ", feature_group_count=12", False),  # grouped, twelve channels each
        (144, "", False),
        (1, ", feature_group_count=1", False),
    ],
)
def test_a_depthwise_convolution_has_a_group_per_feature(features: int, groups: str, *, alone: bool) -> None:
    text = CONVOLUTION.format(result=f"bf16[8,32,32,{features}]{{3,2,1,0}}", groups=groups)
    assert convolves_each_alone(text) is alone


def test_a_fusions_text_does_not_tell_of_groups() -> None:
    assert not convolves_each_alone("%fusion.1 = f32[8,144]{1,0} fusion(f32[8,8]{1,0} %p.0)")
