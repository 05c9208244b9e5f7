"""What a rule is written with: ``from tfdoctor.families.kit import *``."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any, Self

from tfdoctor.diagnosis.rule import RuleLimits, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, Dataflow, in_body, is_backward
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Dataset, Operation, Program, Shape, kind_of
from tfdoctor.facts.run_work.line_groups import ONE_BY_ONE, CalledWork, line_groups
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.families.call_rules import CallLimits, CallRule
from tfdoctor.families.input_stages import (
    MAPS,
    ONE_THREAD,
    READERS,
    awaited,
    bound_by,
    heaviest,
    left_on_all_cores,
    work_table,
)
from tfdoctor.families.places import (
    PART,
    SHOWN_ROWS,
    RunPlace,
    SlowPlaces,
    changes,
    in_function,
    line_table,
    none_seen,
)
from tfdoctor.families.preconditions import figures_per_step, found, not_on, pipeline_ran, timed_steps, whole_run
from tfdoctor.families.shares import judged
from tfdoctor.families.small_calls import rows_per_batch, small_calls
from tfdoctor.families.spared import nothing, spared, why_not
from tfdoctor.terms.humanize import counted, duration, location, milliseconds, number, percent, quantity
from tfdoctor.terms.kinds import DeviceKind, Phase, RunCall, StepSource
from tfdoctor.terms.pages import page
from tfdoctor.terms.record import Record
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
)

__all__ = [
    "GRADIENT_SCOPE", "MAPS", "ONE_BY_ONE", "ONE_THREAD", "PART", "READERS", "SHOWN_ROWS", "Any", "Bound",
    "Breakdown", "CallLimits", "CallRule", "Callable", "CalledWork", "Cell", "Concern", "Cores",
    "CpuContention", "Dataflow", "Dataset", "DatasetProperties", "Device", "DeviceKind", "Effect", "Evidence",
    "Finding", "Framework", "Hardware", "Healthy", "InputPipeline", "Iterable", "Iterator", "Location",
    "MadeCall", "Mapping", "Measure", "NotApplicable", "Operation", "OperationRows", "OperationTime",
    "Operations", "PartTime", "Phase", "Program", "Record", "Recurrence", "Remedy", "RuleLimits", "RunCall",
    "RunCalls", "RunEffect", "RunPhases", "RunPlace", "RunSteps", "Self", "Sequence", "Severity", "Shape",
    "SlowPlaces", "Stage", "StageTime", "StepSource", "StepWork", "Steps", "Table", "Unavailable", "Verdict",
    "awaited", "bound_by", "changes", "count", "counted", "defaultdict", "duration", "figures_per_step",
    "found", "heaviest", "in_body", "in_function", "inf", "is_backward", "judged", "kind_of",
    "left_on_all_cores", "limit", "line_groups", "line_table", "location", "milliseconds", "ms", "nbytes",
    "none_seen", "not_on", "nothing", "number", "page", "percent", "pipeline_ran", "prod", "quantity", "ratio",
    "re", "replace", "rows_per_batch", "share_limit", "small_calls", "spared", "timed_steps", "whole_run",
    "why_not", "work_table",
]  # fmt: skip
