"""What tests are written with, whatever they are of: ``from tests.kit import *``."""

import ast
import contextlib
import gzip
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases, each, text_parts
from tests.command import ran_command
from tfdoctor.terms.errors import ConfigError, InputError, OutputError, TfdoctorError
