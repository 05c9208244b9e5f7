"""What tests of a rule and its cases are written with: ``from tests.rules.kit import *``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.rules.applied import applied
from tests.rules.run_facts import dataset_of, divided_run, equal_steps, made_call, run_line
from tests.rules.verdicts import (
    as_finding,
    as_healthy,
    as_not_applicable,
    effects,
    first_action,
    first_code,
    kinds,
    near,
    scales,
)  # fmt: skip
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.machine.memory import HostMemory
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Dataset, DatasetParameters, Layer, Operation, Program, RunSettings, Shape
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.host_time import PythonOverhead
from tfdoctor.facts.step_time.python_work import CompileTime
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import PassStarts
from tfdoctor.terms.kinds import DeviceKind, Phase, RunCall, StepSource
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Concern,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    StepWork,
    Table,
    Verdict,
)

__all__ = [
    "Any", "Bound", "Breakdown", "Callable", "Chart", "CompileTime", "Concern", "Cores", "CpuContention",
    "Dataset", "DatasetParameters", "DatasetProperties", "Device", "DeviceKind", "Effect", "Finding",
    "Framework", "GraphLoop", "Hardware", "Healthy", "HostLines", "HostMemory", "InputPipeline", "Iterable",
    "Iterator", "Layer", "LineWork", "Location", "LoopWork", "MadeCall", "Mapping", "Measure", "NotApplicable",
    "Operation", "OperationTime", "Operations", "PassStarts", "Phase", "Program", "PythonOverhead", "Remedy",
    "RunCall", "RunCalls", "RunLine", "RunPhases", "RunSettings", "RunSteps", "Sequence", "Severity", "Shape",
    "Stage", "StageTime", "StepSource", "StepWork", "Steps", "Table", "TimedLine", "Unavailable", "Verdict",
    "applied", "as_finding", "as_healthy", "as_not_applicable", "dataset_of", "divided_run", "effects",
    "equal_steps", "first_action", "first_code", "kinds", "made_call", "ms", "near", "partial", "ratio",
    "replace", "run_line", "scales",
]  # fmt: skip
