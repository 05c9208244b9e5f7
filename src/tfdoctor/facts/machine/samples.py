"""The sampled load of the machine while the steps were traced."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuSample, MachineSample

# Cores that other programs may use before they count as a disturbance: a quarter of a small machine.
BUSY_CORES = 0.5
BUSY_PCT = 50  # Percent of the time with a kernel on the GPU from which it is busy: an idle GPU may lower its clock
# NVML's load is a mean over the past 1/6 to 1 s, by product (nvml.h), and GPM's over half a second: a shorter
# window says nothing for certain.
GPU_PERIOD_S = 2.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Means over the traced window, or over the whole run when the window is shorter than a sample.

    Cores are numbers of logical CPUs at work; None is "not sampled".
    """

    count: int
    run_cores: float | None = None  # used by the run
    other_cores: float | None = None  # used by everything else on the machine
    run_bytes: float | None = None  # resident memory of the run, the maximum
    gpu_busy: float | None = None  # 0 to 1: share of time with any kernel (not matrix-unit use)
    tensor_active: float | None = None  # 0 to 1: share of time in which tensor cores worked (GPM)
    tensor_share: float | None = None  # the same, of the time in which the GPUs were busy

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Average the samples."""
        window = window_of(recording)
        sampled = in_window(window, [row for row in recording.samples if row.host])
        host = [row.host for row in sampled if row.host]
        if not host:
            raise Unavailable(f"the machine was not sampled{framework.with_tfdoctor}")
        rows = in_window(window, [row for row in recording.samples if row.gpu])
        long = window is None or window[1] - window[0] >= GPU_PERIOD_S * 1e9
        gpus = [gpu for row in rows for gpu in row.gpu if gpu.visible is not False and long]
        # A reading of GPM covers half a second, so that those in which a GPU begins or ends its work hold idle time
        # too: the median leaves them out.
        busy = [gpu for gpu in gpus if (gpu.gpu_pct or 0) >= BUSY_PCT]
        active = [float(gpu.tensor_pct) for gpu in busy if gpu.tensor_pct is not None]
        load = _mean((gpu.gpu_pct for gpu in busy), 1.0)
        return cls(
            count=len(host),
            run_cores=_mean((row.run_cpu_pct for row in host), 0.01),
            other_cores=_mean((row.other_cpu_pct for row in host), 0.01),
            run_bytes=max((row.run_rss_bytes for row in host if row.run_rss_bytes), default=None),
            gpu_busy=_mean((gpu.gpu_pct for gpu in gpus), 0.01),
            tensor_active=_mean((gpu.tensor_pct for gpu in gpus), 0.01),
            tensor_share=min(1.0, float(np.median(active)) / load) if active and load else None,
        )


def of_gpus(recording: Recording, least_pct: float = 0.0) -> dict[int, list[GpuSample]]:
    """Return the samples of each GPU that the run may use, by NVML's index, at which it was so busy."""
    rows: dict[int, list[GpuSample]] = defaultdict(list)
    for gpu in (gpu for sample in recording.samples for gpu in sample.gpu):
        if gpu.visible is not False and (gpu.gpu_pct or 0) >= least_pct:
            rows[gpu.index].append(gpu)
    return dict(sorted(rows.items()))


def window_of(recording: Recording) -> tuple[int, int] | None:
    """Return when tracing began and ended, in ns since 1970; None where unknown, because all samples count then."""
    window = recording.manifest.window if recording.manifest else None
    if window is None or not window.stopped_unix_ns:
        return None
    return window.started_unix_ns, window.stopped_unix_ns


def in_window(window: tuple[int, int] | None, rows: Sequence[MachineSample]) -> Sequence[MachineSample]:
    """Return the samples of the traced window; a sample covers the time before it was taken.

    Of a short window it is the sample that was under way when it ended, else the last before that.
    """
    if window is None:
        return rows
    start, stop = window
    inside = [row for row in rows if start < row.unix_ns <= stop]
    return inside[1:] or inside or [row for row in rows if row.unix_ns > stop][:1] or rows[-1:]


def _mean(values: Iterable[float | None], unit: float) -> float | None:
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) * unit if known else None
