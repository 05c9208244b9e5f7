"""How long matmuls of 16-bit types would take on a GPU in the kernels for aligned widths, at least.

Where a width is no multiple of 16 bytes, cuBLAS and cuDNN copy the tensors into padded ones or use kernels that
load single elements, and XLA may take a kernel of its own instead of the library's.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operations import HALVES, Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.steps.steps import Steps, StepSpans
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage


@dataclass(frozen=True, slots=True)
class AlignedTimes:
    """Times in ms per training step, by the operation's name.

    ``least_ms`` of a matmul is that of its FLOPs at the rate that the best aligned kernels reach, or of its bytes;
    of another operation that of its bytes. ``cleared_ms`` is the time in which buffers for it are cleared: that of
    the transfers that the trace assigns to it.
    """

    least_ms: Mapping[str, float]
    cleared_ms: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware, activity: Activity, steps: Steps) -> Self:
        """Compare the operations with the rates of the GPU.

        Raises:
            Unavailable: it is no GPU, or its peak rate is unknown.
        """
        if hardware.kind != DeviceKind.GPU or not hardware.peak_flop_s:
            raise Unavailable("only the rates of known GPUs are compared")
        bandwidth, rate = hardware.bandwidth_bytes_s, hardware.peak_flop_s * hardware.reached
        least: dict[str, float] = {}
        for row in operations.rows:
            needed = (row.nbytes or 0.0) / bandwidth if bandwidth else 0.0
            if row.is_matrix:
                known = row.flops and row.precision in HALVES
                needed = max(needed, (row.flops or 0.0) / rate) if known else 0.0
            least[row.name] = min(row.ms, needed * row.calls * 1e3)
        cleared: dict[str, float] = defaultdict(float)
        work = activity.stages.get(Stage.TRANSFER)
        if work is not None and len(work.label):
            inside, calls = StepSpans.of(steps).holds(work.start_ps), sum(step.calls for step in steps.steady_steps)
            sums = np.bincount(work.label[inside], work.attributed_ps()[inside], len(work.labels))
            for (name, _, _), time in zip(work.labels, (sums / calls / PS_PER_MS).tolist(), strict=True):
                cleared[name] += time
        return cls({name: ms for name, ms in least.items() if ms}, {n: ms for n, ms in cleared.items() if n and ms})
