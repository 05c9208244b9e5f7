"""NVIDIA GPUs: what CUPTI's collector says of them, and how fast they are."""

from dataclasses import dataclass

from scripts.synthetic.run import Chip, Run


@dataclass(frozen=True, slots=True)
class Gpu:
    """What CUPTI's collector says of a device, and what its data sheet adds."""

    name: str
    capability: tuple[int, int]
    clock_khz: int
    multiprocessors: int
    bandwidth: int  # bytes per second
    memory: int  # bytes
    rates: dict[str, int]  # FLOP per multiprocessor and clock, dense
    pinned: float  # bytes per second over the bus


GPUS = {
    "v100": Gpu("Tesla V100-SXM2-16GB", (7, 0), 1_530_000, 80, 898_048_000_000, 16_900_000_000,
                {"fp32": 128, "fp16": 1024}, 12e9),
    "t4": Gpu("Tesla T4", (7, 5), 1_590_000, 40, 320_064_000_000, 15_800_000_000,
              {"fp32": 128, "fp16": 1024}, 12e9),
    "gtx1660": Gpu("NVIDIA GeForce GTX 1660 Ti", (7, 5), 1_770_000, 24, 288_048_000_000, 6_442_000_000,
                   {"fp32": 128, "fp16": 40}, 12e9),
    "a100": Gpu("NVIDIA A100-SXM4-40GB", (8, 0), 1_410_000, 108, 1_555_200_000_000, 42_285_000_000,
                {"fp32": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048}, 24e9),
    "h100": Gpu("NVIDIA H100 80GB HBM3", (9, 0), 1_980_000, 132, 3_352_320_000_000, 85_000_000_000,
                {"fp32": 256, "tf32": 2048, "fp16": 4096, "bf16": 4096}, 50e9),
}  # fmt: skip
"""A GTX 1660 Ti has no Tensor Cores; its rate in float16 makes a network about 3 times as slow, as in issue 44191
of tensorflow/tensorflow."""

PAGEABLE = 4e9
"""Bytes per second of a copy from memory that is not pinned (seen: 3.5 to 4.5 GB/s)."""


def chip(run: Run) -> Chip:
    """Return what the run's device can do in its precision.

    Raises:
        ValueError: the device does not know the precision.
    """
    gpu = GPUS[run.device]
    if run.precision not in gpu.rates:
        raise ValueError(f"{gpu.name} has no {run.precision}, only {', '.join(gpu.rates)}")
    peak = gpu.multiprocessors * gpu.clock_khz * 1e3 * gpu.rates[run.precision] * run.clock
    half = run.precision in ("fp16", "bf16")
    return Chip(peak, gpu.bandwidth, 8 if half else 1, 2 if half else 4)
