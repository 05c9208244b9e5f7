"""What a rule is written with: ``from tfdoctor.families.kit import *``."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, StrEnum, auto
from math import inf, prod
from typing import Any, Self

from tfdoctor.diagnosis.rule import RuleLimits, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.growth.memory_trends import MemoryTrends, clause, counts_table, growing_counts
from tfdoctor.facts.input.cacheable import Cacheable, RepeatedWork
from tfdoctor.facts.input.dataset_properties import TENSOR, DatasetProperties, FunctionGraphs, repeatable
from tfdoctor.facts.input.feeding_datasets import DataOptions, FileReads, SourceFiles
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline, StageTime, feeds
from tfdoctor.facts.input.map_functions import OVERSIZED_TIMES, DecodedImages, MapFunctions
from tfdoctor.facts.input.training_inputs import Conversions, SequencePadding, bucketing
from tfdoctor.facts.kit import reached
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.machine.memory import DeviceMemory, HostMemory
from tfdoctor.facts.machine.samples import GpuBoards
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, Dataflow, in_body, is_backward
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operation_time import (
    OperationRows,
    OperationTime,
    fastest_flop_s,
    flop_s,
    layer_table,
)
from tfdoctor.facts.operations.operations import BACKPROP, HALVES, Operations
from tfdoctor.facts.operations.step_parts import BatchNorms, OptimizerWork, is_small
from tfdoctor.facts.phases import run_course
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls, RunTraces, TracedDefinition
from tfdoctor.facts.phases.run_growth import RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.operation_types import (
    BROADCASTING,
    CONSTANT,
    CONVOLUTIONS,
    MATMULS,
    RANDOM,
    SHAPES,
    UNARY,
    UPDATES,
)
from tfdoctor.facts.run.program import WIDTHS, Dataset, Operation, Places, Program, Shape, Tensor, kind_of
from tfdoctor.facts.run_work.line_groups import IN_STEPS, ONE_BY_ONE, CalledWork, LineGroup, line_groups
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.given import SHARE, Unexplained
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.scale.replicas import DeviceSkew, Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_time import LoopBody, PythonOverhead
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork
from tfdoctor.facts.step_time.sampled_steps import HostLines, StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine, slow_call, summed
from tfdoctor.facts.steps.steps import SteadySteps, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.families.calls import ON_BATCH_MS, USUAL_ROWS, CallLimits, CallRule, rows_per_batch, small_calls
from tfdoctor.families.forms import SAME, cheaper_form
from tfdoctor.families.input_stages import *
from tfdoctor.families.places import *
from tfdoctor.families.preconditions import (
    figures_per_step,
    found,
    not_on,
    only_on,
    pipeline_ran,
    timed_steps,
    whole_run,
)
from tfdoctor.families.shares import judged, nothing, spared, why_not
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, location, milliseconds, number, percent, quantity, with_noun
from tfdoctor.terms.kinds import DeviceKind, InputKind, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.pages import page
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import bandwidth, count, flop_rate, ms, nbytes, ratio
from tfdoctor.terms.verdict import *
