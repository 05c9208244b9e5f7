"""The list of all samplers; each finds out at its start whether it has something to sample."""

from tfdoctor.capture.sampler import Sampler
from tfdoctor.capture.sampler.host import HostSampler
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.capture.sampler.tpu import TpuSampler, TpuSdkSampler


def all_samplers() -> list[Sampler]:
    """Return a new sampler of each kind."""
    return [HostSampler(), NvmlSampler(), RaplSampler(), TpuSampler(), TpuSdkSampler()]
