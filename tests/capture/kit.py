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
# fmt: skip
