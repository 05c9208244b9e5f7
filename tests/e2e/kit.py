"""What tests of whole runs are written with: ``from tests.e2e.kit import *``."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.capture.running import *
from tests.capture.spans import Mark, iterator_names, marks, numbers
from tests.cases import cases, each
from tests.command import tfdoctor
from tests.facts.kit import Told
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.terms.verdict import Edit, Finding, Location

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).with_name("scripts")


def clean(run: Run) -> Run:
    """Return a recording of which nothing is missing."""
    assert (run.manifest.agent_errors, run.missing()) == ((), {})
    return run


def feeding(program: Any) -> list[Any]:
    """Return the datasets that feed the training: from the one that it reads down to its source."""
    datasets, chain = {one["id"]: one for one in program["datasets"]}, [program["feeds"]]
    while chain[-1] in datasets:
        chain.append(next(iter(datasets[chain[-1]]["inputs"]), None))
    return [datasets[one] for one in chain[:-1]]


def text_of(at: Any, script: Path) -> object:
    """Return the text of a line of the script; of another place, the file."""
    own = at and Path(at[0]).name == script.name
    return script.read_text().splitlines()[at[1] - 1].strip() if own else at and at[0]
