"""NVIDIA's GPM: the activity of the Tensor Cores of a GPU (Hopper or later)."""

import time
from typing import Any

TENSOR = 5  # GPM's id of their activity (nvml.h of CUDA 13), in percent of the time between two readings

EVERY_S = 0.5  # NVIDIA: more than 100 ms apart, the internal refresh rate; twice a second is enough for a mean


class Gpm:
    """The mean activity of one GPU between two readings.

    ``missing`` says why there is none, "" if there is one.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401  # pynvml has no types
        self.nvml, self.handle = nvml, handle
        self.missing = ""
        self.samples: list[Any] = []
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                self.missing = "the GPU has no GPM (Hopper and later have it)"
            else:
                self.samples = [nvml.nvmlGpmSampleAlloc() for _ in range(2)]
                self.request = nvml.c_nvmlGpmMetricsGet_t()  # 19 kB: allocated once
                nvml.nvmlGpmSampleGet(handle, self.samples[0])
                self.sampled_at = time.monotonic()
        except Exception as error:  # noqa: BLE001  # MIG divides the GPU; NVMLLibraryMismatchError is no NVMLError
            self.missing = f"GPM was refused ({type(error).__name__})"
            self.close()

    def read(self) -> dict[str, float]:
        """Return the mean since the last reading; nothing if that is below EVERY_S ago, or there is no number."""
        now = time.monotonic()
        if self.missing or now - self.sampled_at < EVERY_S:
            return {}
        older, newer = self.samples
        self.nvml.nvmlGpmSampleGet(self.handle, newer)
        request = self.request
        request.version = self.nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics, request.sample1, request.sample2 = 1, older, newer
        metric = request.metrics[0]
        metric.metricId = TENSOR
        self.nvml.nvmlGpmMetricsGet(request)
        self.samples, self.sampled_at = [newer, older], now
        known = metric.nvmlReturn == self.nvml.NVML_SUCCESS and metric.value == metric.value  # it may be NaN
        return {"tensor_pct": round(metric.value, 3)} if known else {}

    def close(self) -> None:
        """Free the samples, which NVML allocated outside of Python."""
        for sample in self.samples:
            self.nvml.nvmlGpmSampleFree(sample)
        self.samples = []
