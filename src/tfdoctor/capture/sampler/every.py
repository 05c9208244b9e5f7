"""All samplers that there are; each says for itself whether there is something to sample."""

from tfdoctor.capture.sampler import Sampler
from tfdoctor.capture.sampler.host import HostSampler
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.capture.sampler.tpu import TpuSampler
from tfdoctor.capture.sampler.tpu_sdk import TpuSdkSampler


def every() -> list[Sampler]:
    """Return one of each kind."""
    return [HostSampler(), NvmlSampler(), TpuSampler(), TpuSdkSampler()]
