"""narrow-link: a link counts by its rate, while the GPU is busy and the step waits for copies."""

from tests.rules.kit import *
from tfdoctor.rules.scale.narrow_link import Limits, check


def example(
    width: int = 4, generation: int = 4, samples: int = 20, *, transfer: float = 40.0,
    kind: DeviceKind = DeviceKind.GPU,
) -> Verdict:  # fmt: skip
    """Steps of 100 ms wait 40 ms for copies over 4 of 16 lanes."""
    board = Board(name="GPU", index=0, widest_link=(4, 16), link=(generation, width), link_samples=samples)
    breakdown = Breakdown.of(device=100.0 - transfer, transfer=transfer)
    return check(GpuBoards((board,)), Device(kind, 1, 1), breakdown)


sick = example


def healthy() -> Verdict:
    """The same step over 16 lanes."""
    return example(16)


def test_half_of_the_lanes_are_too_few() -> None:
    assert [type(example(width)) for width in (8, 16)] == [Finding, Healthy]


def test_copies_take_the_time_of_the_possible_rate_at_best() -> None:
    """An older generation is as slow as fewer lanes."""
    assert [left for _, _, left, _ in effects(example(16, 3))] == [near(0.5, abs=0.01)]
    verdict = as_finding(example(4))
    assert [(part, left, bound) for part, _, left, bound in effects(verdict)] == [
        (Stage.TRANSFER, 0.25, Bound.AT_MOST)
    ]
    assert "generation 4 with 4 lanes, and generation 4 with 16 lanes is possible" in verdict.summary


def test_a_link_that_nothing_waits_for_is_no_fault() -> None:
    assert isinstance(example(transfer=3.0), Finding)
    assert "4 lanes" in as_healthy(example(transfer=2.9)).summary


def test_a_few_readings_are_not_judged() -> None:
    assert [type(example(samples=samples)) for samples in (int(Limits().samples), 2)] == [Finding, NotApplicable]


def test_an_unknown_generation_has_no_rate() -> None:
    assert isinstance(example(4, 9), NotApplicable)


def test_a_run_on_the_cpu_is_not_judged() -> None:
    assert "no GPU" in as_not_applicable(example(kind=DeviceKind.CPU)).reason


def rows(*readings: tuple[int, int, int]) -> GpuBoards:
    board = {"pcie_max_gen": 4, "pcie_max_width": 16}
    samples: list[Any] = [
        {"unix_ns": n, "gpu": [{"index": 0, "gpu_pct": busy, "pcie_gen": gen, "pcie_width": width}]}
        for n, (busy, gen, width) in enumerate(readings, 1)
    ]
    samples[0]["gpu"][0]["board"] = board
    return chart(trace(), recording(samples=samples)).fact(GpuBoards)


def test_an_idle_board_lowers_its_link() -> None:
    """Trap: between the steps of a slow input, the driver reports generation 1."""
    (board,) = rows((0, 1, 16), (0, 1, 16), (0, 1, 16), (99, 4, 16)).boards
    assert (board.link, board.widest_link, board.link_samples) == ((4, 16), (4, 16), 1)
