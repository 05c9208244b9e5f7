"""What a rule is written with: ``from tfdoctor.diagnosis.kit import *``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tfdoctor.diagnosis.preconditions import figures_per_step, found, not_on, pipeline_ran, timed_steps, whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.diagnosis.shares import judged
from tfdoctor.diagnosis.spared import spared
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Dataset, Operation, Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.humanize import counted, location, milliseconds, number, percent
from tfdoctor.terms.kinds import DeviceKind, Phase, RunCall, StepSource
from tfdoctor.terms.pages import page
from tfdoctor.terms.units import count, ms, nbytes, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Cell,
    Concern,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    PartTime,
    Recurrence,
    Remedy,
    RunEffect,
    Severity,
    Stage,
    StepWork,
    Table,
    Verdict,
)  # fmt: skip

__all__ = [
    "Bound", "Breakdown", "Callable", "Cell", "Concern", "Cores", "Dataset", "Device", "DeviceKind", "Effect",
    "Evidence", "Finding", "Framework", "Hardware", "Healthy", "InputPipeline", "Iterable", "Iterator",
    "Location", "Mapping", "Measure", "NotApplicable", "Operation", "OperationTime", "Operations",
    "PartTime", "Phase", "Program", "Recurrence", "Remedy", "RunCall", "RunEffect", "RunLine", "RunPhases",
    "RunSteps", "Sequence", "Severity", "Stage", "StageTime", "StepSource", "StepWork", "Steps", "Table",
    "Topic", "Unavailable", "Verdict", "count", "counted", "dataclass", "figures_per_step", "found",
    "judged", "limit", "location", "milliseconds", "ms", "nbytes", "not_on", "number", "page", "percent",
    "pipeline_ran", "prod", "ratio", "re", "replace", "share_limit", "spared", "timed_steps", "whole_run",
]  # fmt: skip
