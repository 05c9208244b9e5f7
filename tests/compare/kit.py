"""What tests here are written with: ``from tests.compare.kit import *``."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases, each
from tests.compare.made import *
from tests.facts.kit import Told, fields, stated
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import (
    WIDEST,
    ChangeOfStep,
    Direction,
    FindingState,
    PartChange,
    RunComparison,
    StepFigure,
)
from tfdoctor.diagnosis.gates import BudgetCheck, BudgetState, KnownFinding, Off, Settings
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Takes
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report.formats.json import contract
from tfdoctor.terms.errors import InputError, OutputError
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.verdict import *
