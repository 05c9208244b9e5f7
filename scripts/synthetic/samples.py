"""The project's synthetic samples: how they are made, and what sample_traces/README.md says of them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.synthetic import gpu, tpu
from scripts.synthetic.network import Network
from scripts.synthetic.run import Chip, Run, Truth
from scripts.synthetic.xspace import Space

TRACE = Path("plugins/profile/run/vm.xplane.pb")
"""Where TensorBoard looks for a trace in its log directory."""

TRUTH = "truth.json"


@dataclass(frozen=True, slots=True)
class Sample:
    """A run to try tfdoctor on, and what it is to show."""

    name: str
    shows: str
    run: Run


SAMPLES = (
    Sample(
        "synthetic-gpu-a100-fp32",
        "A convolutional network in float32 (so on an A100 in TF32) whose steps wait for a sequential "
        "`map`. Batches are copied from pageable memory while nothing computes.",
        Run(device="a100", precision="tf32", input_ms=4.0, copy="pageable"),
    ),
    Sample(
        "synthetic-tpu-v5e-padded",
        "A network in bfloat16 with depthwise convolutions and 144 channels, on an MXU of width 128: the "
        "input is fast, but the MXU is mostly idle.",
        Run(device="v5e", precision="bf16", network=Network(width=144, depthwise=True)),
    ),
)

ROWS = (
    ("step_ms", "step", "{step_ms:.3f} ms"),
    ("input_wait_ms", "waiting for a batch", "{input_wait_ms:.3f} ms"),
    ("input_work_ms", "making a batch", "{input_work_ms:.3f} ms"),
    ("copy_ms", "copying a batch to the device (while nothing computes)",
     "{copy_ms:.3f} ms ({copy_exposed_ms:.3f} ms), {copy_bytes} bytes"),
    ("compute_ms", "computing", "{compute_ms:.3f} ms in {operations} operations"),
    ("matrix_ms", "computing convolutions and matmuls", "{matrix_ms:.3f} ms"),
    ("padding_ms", "computing padding in convolutions and matmuls", "{padding_ms:.3f} ms"),
    ("batch_norm_ms", "batch normalization", "{batch_norm_ms:.3f} ms"),
    ("depthwise_ms", "depthwise convolutions", "{depthwise_ms:.3f} ms"),
    ("between_ms", "between steps", "{between_ms:.3f} ms"),
    ("matrix_unit_use", "use of the matrix unit while computing", "{matrix_unit_use:.1%} of {peak}"),
)  # fmt: skip
"""What the README tells of every step, where the figure is not 0."""


def build(run: Run) -> tuple[Space, Truth]:
    """Return a run's trace and what is known of it.

    Raises:
        ValueError: the device does not know the precision.
    """
    if run.device in gpu.GPUS:
        return gpu.build(run), gpu.truth(run)
    return tpu.build(run), tpu.truth(run)


def chip(run: Run) -> Chip:
    """Return what the run's device can do in its precision.

    Raises:
        ValueError: the device does not know the precision.
    """
    return gpu.chip(run) if run.device in gpu.GPUS else tpu.chip(run)


def write(run: Run, folder: Path) -> Truth:
    """Write a TensorBoard log directory, with the truth beside it; return the truth.

    Raises:
        ValueError: the device does not know the precision.
    """
    space, truth = build(run)
    path = folder / TRACE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(space.serialized())
    (folder / TRUTH).write_text(json.dumps(asdict(truth), indent=2) + "\n", encoding="utf-8")
    return truth


def describe(sample: Sample) -> str:
    """Return the README's section on a sample."""
    _, truth = build(sample.run)
    figures = asdict(truth) | {"peak": f"{chip(sample.run).peak_flop_s / 1e12:.0f} TFLOP/s"}
    lines = [
        f"## {sample.name}\n",
        f"{sample.shows} **Synthetic: no such run happened.**\n",
        f"| each of {truth.steps} steps | |\n|---|---|",
        *(f"| {label} | {text.format_map(figures)} |" for key, label, text in ROWS if figures[key]),
    ]
    return "\n".join(lines) + "\n"
