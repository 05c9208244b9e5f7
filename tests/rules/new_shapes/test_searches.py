"""A search is told by the number of different kernels of one convolution in one step."""

import pytest

from tests.builders import chart, line, markers, trace, v100
from tfdoctor.facts.chart import Unavailable
from tfdoctor.rules.new_shapes.searches import CANDIDATES, Searches

KERNELS = (
    "volta_scudnn_128x64_relu_interior_nn_v1",
    "volta_scudnn_128x128_relu_interior_nn_v1",
    "implicit_convolve_sgemm<float>",
    "precomputed_convolve_sgemm<float>",
    "winograd_scudnn_winograd_128x128",
)
CONV = {"tf_op": "model/conv/Conv2D:Conv2D"}


def searched(kernels: int, steps: range, of: int = 8, **stats: str) -> Searches:
    """Measure a trace in which the convolution runs so many kernels of 1 ms in the given steps, else one."""
    rows = [
        (KERNELS[number], 10.0 * step + number, 10.0 * step + number + 1, CONV | stats)
        for step in range(of)
        for number in range(kernels if step in steps else 1)
    ]
    return chart(trace([markers(of, 10.0)], gpus=[v100(line("Stream #1", *rows))])).fact(Searches)


@pytest.mark.parametrize(("kernels", "steps"), [(CANDIDATES, 8), (CANDIDATES - 1, 0)])
def test_both_sides_of_the_number_of_kernels(kernels: int, steps: int) -> None:
    found = searched(kernels, range(8))
    assert (found.steps, found.of) == (steps, 8)


def test_the_kernels_that_were_only_tried_are_lost() -> None:
    found = searched(5, range(8))
    assert found.lost_ms == pytest.approx(4.0)
    assert found.late == 4
    assert found.operations[0][0] == "model/conv/Conv2D"


def test_a_search_at_the_start_is_not_late() -> None:
    found = searched(5, range(2))
    assert (found.steps, found.late) == (2, 0)


def test_other_operations_may_run_several_kernels() -> None:
    """Trap: an attention layer of many kernels."""
    assert searched(5, range(8), tf_op="model/attention/Einsum:Einsum").steps == 0


def test_a_run_on_a_cpu_has_none() -> None:
    with pytest.raises(Unavailable):
        chart(trace([markers(8, 10.0)])).fact(Searches)
