"""narrow-link: a link counts by its rate, while the GPU is busy and the step waits for copies."""

from tests.rules.kit import *
from tfdoctor.rules.scale.narrow_link import check


def example(
    width: int = 4, generation: int = 4, samples: int = 20, *, transfer: float = 40.0,
    kind: DeviceKind = DeviceKind.GPU,
) -> Verdict:  # fmt: skip
    """Steps of 100 ms wait 40 ms for copies over 4 of 16 lanes."""
    board = Board(name="GPU", index=0, widest_link=(4, 16), link=(generation, width), link_samples=samples)
    breakdown = Breakdown.of(device=100.0 - transfer, transfer=transfer)
    return check(GpuBoards((board,)), Device(kind, 1, 1), breakdown)


def rows(*readings: tuple[int, int, int]) -> GpuBoards:
    board = {"pcie_max_gen": 4, "pcie_max_width": 16}
    samples: list[Any] = [
        {"unix_ns": n, "gpu": [{"index": 0, "gpu_pct": busy, "pcie_gen": gen, "pcie_width": width}]}
        for n, (busy, gen, width) in enumerate(readings, 1)
    ]
    samples[0]["gpu"][0]["board"] = board
    return chart(trace(), recording(samples=samples)).fact(GpuBoards)


sick = example
healthy = described("The same step over 16 lanes.", example, 16)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half of the lanes are too few"] = example(8)
    told["an older generation is as slow as fewer lanes"] = example(16, 3)
    told["3 % of the step are copies that nothing hides, and less"] = example(transfer=3.0), example(transfer=2.9)
    told["three readings, and two"] = example(samples=3), example(samples=2)
    told["an unknown generation has no rate"] = example(4, 9)
    told["a run on the CPU"] = example(kind=DeviceKind.CPU)
    (idle,) = rows((0, 1, 16), (0, 1, 16), (0, 1, 16), (99, 4, 16)).boards
    told["trap: between the steps of a slow input, the driver reports generation 1"] = idle
