"""What tests of the recorder are written with: ``from tests.capture.kit import *``."""

import contextlib
import functools
import gc
import inspect
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.capture import agent
from tests.capture.running import SOURCES, environment
from tests.capture.windows import make, source
from tests.cases import cases, each, sure
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
