"""NVIDIA's GPM: the activity of Tensor Cores, SMs and memory of a GPU (Hopper or later)."""

import time
from contextlib import suppress
from typing import Any

# GPM's ids (nvml.h of CUDA 13) and our names: percent of the time between two readings, or MiB/s.
METRICS = {
    2: "sm_pct",
    3: "occupancy_pct",
    5: "tensor_pct",
    7: "tensor_hmma_pct",
    9: "tensor_imma_pct",
    10: "dram_pct",
    20: "pcie_tx_mib_s",
    21: "pcie_rx_mib_s",
    60: "nvlink_rx_mib_s",
    61: "nvlink_tx_mib_s",
}

EVERY_S = 0.5  # NVIDIA: more than 100 ms apart, the internal refresh rate; twice a second is enough for a mean


class Gpm:
    """The mean activity of one GPU between two readings.

    ``missing`` says why there is none, "" if there is one.
    """

    def __init__(self, nvml: Any, handle: Any, instance: int | None = None) -> None:  # noqa: ANN401
        self.nvml, self.handle, self.instance = nvml, handle, instance
        self.missing = ""
        self.samples: list[Any] = []
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                self.missing = "the GPU has no GPM (Hopper and later have it)"
                return
            self.samples = [nvml.nvmlGpmSampleAlloc() for _ in range(2)]
            self.request = nvml.c_nvmlGpmMetricsGet_t()  # 19 kB: allocated once
            self._sample(self.samples[0])
            self.sampled_at = time.monotonic()
        except Exception as error:  # noqa: BLE001  # NVMLLibraryMismatchError is no NVMLError
            self.missing = f"GPM was refused ({type(error).__name__})"
            self.close()

    def _sample(self, buffer: Any) -> None:  # noqa: ANN401
        if self.instance is None:
            self.nvml.nvmlGpmSampleGet(self.handle, buffer)
        else:
            self.nvml.nvmlGpmMigSampleGet(self.handle, self.instance, buffer)

    def read(self) -> dict[str, float]:
        """Return the means since the last reading; nothing if that is below EVERY_S ago."""
        now = time.monotonic()
        if self.missing or now - self.sampled_at < EVERY_S:
            return {}
        older, newer = self.samples
        self._sample(newer)
        request = self.request
        request.version = self.nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics, request.sample1, request.sample2 = len(METRICS), older, newer
        for index, metric in enumerate(METRICS):
            request.metrics[index].metricId = metric
        self.nvml.nvmlGpmMetricsGet(request)
        self.samples = [newer, older]
        window, self.sampled_at = now - self.sampled_at, now
        values = {
            METRICS[metric.metricId]: round(metric.value, 3)
            for metric in request.metrics[: len(METRICS)]
            if metric.nvmlReturn == self.nvml.NVML_SUCCESS and metric.value == metric.value  # it may be NaN
        }
        return {"gpm_window_s": round(window, 4), **values}

    def close(self) -> None:
        """Free the samples, which NVML allocated outside of Python."""
        for sample in self.samples:
            self.nvml.nvmlGpmSampleFree(sample)
        self.samples = []


def activities(nvml: Any, handle: Any) -> dict[int | None, Gpm]:  # noqa: ANN401
    """Return the readers of a GPU: one under None, or one for each instance if MIG divides it."""
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
        slots = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if current else 0
    except Exception:  # noqa: BLE001  # NVMLLibraryMismatchError is no NVMLError; then it is too old for MIG
        slots = 0
    numbers = set()
    for slot in range(slots):
        with suppress(nvml.NVMLError):  # an empty slot
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
            numbers.add(int(nvml.nvmlDeviceGetGpuInstanceId(part)))
    return {number: Gpm(nvml, handle, number) for number in sorted(numbers)} or {None: Gpm(nvml, handle)}
