"""What tests of facts are written with: ``from tests.facts.kit import *``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    PS,
    Machine,
    Row,
    Thread,
    captured,
    chart,
    device,
    executor,
    graph_operation,
    iterator,
    line,
    manifest,
    marker,
    markers,
    matmul,
    recording,
    trace,
    v100,
    wait,
)  # fmt: skip
from tests.cases import cases, each, unavailable
from tests.h100 import h100
from tests.run_logs import Run
from tests.xspaces import TRACES
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.gpu.activity import Collectives, GpuActivities, HostMemoryKind, Transfer, Transfers
from tfdoctor.facts.gpu.host_syncs import Detours, HostSyncs
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleCause, IdleGaps
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResult, KeptResults, MemoryTrends
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.feeding_datasets import SourceFiles, TunedBuffers
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment, StageTime
from tfdoctor.facts.input.iterators import Iterators, Node
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.machine.cores import Cores, CpuContention, Threads
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory, MemoryWanted
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.dataflow import Dataflow, Source
from tfdoctor.facts.operations.kernel_kinds import Kernel, KernelRole
from tfdoctor.facts.operations.matmuls import MatrixUnit, OneDnn
from tfdoctor.facts.operations.operation_time import ComputePart, OperationTime
from tfdoctor.facts.operations.operations import Operations, Roofline
from tfdoctor.facts.operations.shapes import TracedShapes
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.facts.phases.run_calls import ChangingNumber, MadeCall, RunCalls, RunTraces
from tfdoctor.facts.phases.run_course import Floats, RunCourse
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines, RunSteps
from tfdoctor.facts.quality import Quality
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.run.hardware import Hardware, SixteenBit
from tfdoctor.facts.run.program import (
    Attributes,
    Dataset,
    DatasetParameters,
    FileList,
    KerasPart,
    Layer,
    Operation,
    Places,
    Program,
    RunSettings,
)  # fmt: skip
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.run_work.line_groups import CalledWork
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts
from tfdoctor.facts.savings.dispatch import Dispatch, DispatchShares
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.facts.savings.given import Unexplained
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.facts.savings.operation_groups import AllocatedResults, OperationGroup, OperationGroups
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.scale.hosts import ClockSkew, Comparison, HostSteps, MatchedBy
from tfdoctor.facts.step_time.breakdown import PARTS, Breakdown, TracingCost
from tfdoctor.facts.step_time.host_lines import HostLines, LongStepLines, SlowCalls
from tfdoctor.facts.step_time.host_time import LoopBody, PartEvents, SingleOperations
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork, Retracing
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine
from tfdoctor.facts.steps.steps import SteadySteps, Step, Steps
from tfdoctor.facts.steps.untraced_pace import PassStarts, SlowSteps, UntracedPace
from tfdoctor.facts.steps.xla_steps import TimedProgram
from tfdoctor.facts.timeline.activity import Activity, Work
from tfdoctor.facts.timeline.host_events import trainer_waits
from tfdoctor.facts.tpu.operations import Padding, TpuOperations
from tfdoctor.facts.tpu.shapes import Array
from tfdoctor.facts.tpu.time import TpuLaunches, TpuTime
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import Missing, StepsSeen, TracedFunction, TracedWindow, UntracedSteps, WindowCost
from tfdoctor.recording.files import Notes
from tfdoctor.recording.manifest import CapturePlan, EndedProcess, Ending, HostMachine, Manifest, RunTimes
from tfdoctor.recording.program import ProgramRecord, PythonRecord, SeenPlace
from tfdoctor.recording.run_log import (
    AssignedNumber,
    Bucket,
    BucketSteps,
    CallPlace,
    Census,
    FunctionTrace,
    KeptStatement,
    LongStep,
    LoopMakers,
    ProcessEnd,
    RunFramework,
    RunLog,
    RunProcess,
    SeenStack,
    Span,
    TracedNumber,
)  # fmt: skip
from tfdoctor.rules.execution.python_in_loop import LoopLines
from tfdoctor.terms.kinds import DeviceKind, EnergySource, KeptValue, Part, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Errored,
    Finding,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    RunEffect,
    Severity,
    Stage,
    StepWork,
    Table,
)  # fmt: skip
from tfdoctor.trace import Event, EventType, Intervals, Line, Trace, xplane
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction, Pass
