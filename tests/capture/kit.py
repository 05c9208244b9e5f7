"""What tests of the recorder are written with: ``from tests.capture.kit import *``."""

import functools
import gc
import inspect
import socket
import struct
import threading
from types import FrameType

from tests.capture import agent
from tests.capture.running import SOURCES, environment
from tests.capture.windows import make, source
from tests.cases import sure
from tests.kit import *
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.recording.manifest import Sampling


def sampled_until(
    path: Path, samplers: Sequence[Sampler], until: Callable[[SamplingThread], object], pid: int, every_ms: int = 10
) -> tuple[list[dict[str, Any]], tuple[Sampling, ...]]:
    """Sample a process until something is so; return the samples and what is said of each sampler."""
    samples = SamplingThread(path, every_ms, samplers)
    samples.start(pid)
    end = time.monotonic() + 60
    while not until(samples):
        assert time.monotonic() < end
        time.sleep(0.01)
    said = samples.stop()
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else [], said
