"""Detours are told by the names of copies and by the operations of the host between them."""

from typing import Any

import pytest

from tests.builders import chart, line, markers, trace, v100
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.gpu.host_syncs import Detours, HostSyncs

STEPS = 8
THERE, BACK = "model/dense/Relu/_30:_HostRecv", "model/smooth/EagerPyFunc/_32:_Recv"
WORK = "model/smooth/EagerPyFunc:EagerPyFunc"


def traced(
    there: str = THERE, back: str = BACK, work: str = WORK, *, kernel_between: bool = False, stat: str = "tf_op"
) -> Chart:
    """Trace steps of 20 ms: a copy of 1 ms at 5 ms, work on the host, and a copy of 1 ms at 10 ms."""
    host: list[Any] = []
    kernels: list[Any] = []
    copies: list[Any] = []
    for step in range(STEPS):
        at = 20.0 * step
        kernels += [("gemm", at + 1, at + 5), ("gemm", at + 11, at + 15)]
        if kernel_between:
            kernels.append(("gemm", at + 7, at + 8))
        copies.append(("MemcpyD2H", at + 5, at + 6, {stat: there}))
        copies.append(("MemcpyH2D", at + 10, at + 11, {stat: back}))
        host.append((work, at + 6.5, at + 9.5))
    gpu = v100(line("Stream #1", *sorted(kernels, key=lambda row: row[1])), line("Stream #2", *copies))
    return chart(trace([markers(STEPS, 20.0, 18.0), line("tf_Compute/1", *host)], gpus=[gpu]))


def measured(*args: Any, **more: Any) -> Detours:
    """Measure the detours of such steps."""
    return traced(*args, **more).fact(Detours)


@pytest.mark.parametrize("stat", ["tf_op", "annotation", "level 0"])
def test_a_detour_costs_both_copies_and_the_wait(stat: str) -> None:
    (row,) = measured(stat=stat).rows
    assert (row.name, row.type) == ("model/smooth/EagerPyFunc", "EagerPyFunc")
    assert (row.copies_ms, row.waiting_ms) == pytest.approx((2.0, 4.0))
    assert row.calls == pytest.approx(1.0)


@pytest.mark.parametrize(("work", "reads"), [(WORK, 0.0), ("other/Mul:Mul", 1.0)])
def test_python_does_not_read_what_an_operation_on_the_host_takes(work: str, reads: float) -> None:
    assert traced(work=work).fact(HostSyncs).reads == pytest.approx(reads)


def test_a_gpu_that_goes_on_meanwhile_does_not_wait() -> None:
    """Trap: the result is needed later only."""
    assert measured(kernel_between=True).rows == ()


def test_the_next_batch_is_no_way_back() -> None:
    """Trap: the loss goes to the host, and a batch comes in the same step."""
    assert measured(back="IteratorGetNext/_2:_Recv", work="IteratorGetNext:IteratorGetNext").rows == ()


def test_copies_without_an_operation_between_them_are_of_something_else() -> None:
    assert measured(work="other/Mul:Mul").rows == ()


def test_a_value_that_python_reads_has_no_name() -> None:
    assert measured(there="#edge_name=copy#").rows == ()


def test_a_run_on_a_cpu_has_none() -> None:
    with pytest.raises(Unavailable):
        chart(trace([markers(STEPS, 20.0)])).fact(Detours)


def test_copies_without_names_tell_nothing() -> None:
    """As in traces of JAX."""
    with pytest.raises(Unavailable, match="name"):
        measured(there="", back="")
