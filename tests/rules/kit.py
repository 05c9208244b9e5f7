"""What tests of a rule and its cases are written with: ``from tests.rules.kit import *``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.builders import (
    all_ran,
    chart,
    executor,
    graph_operation,
    manifest,
    marker,
    markers,
    matmul,
    program_of,
    recording,
    trace,
    v100,
)
from tests.rules.applied import applied
from tests.rules.golden_cases import Cases, golden_cases, shown
from tests.rules.run_facts import chained, dataset_of, divided_run, equal_steps, made_call, run_line
from tests.rules.verdicts import (
    as_finding,
    as_healthy,
    as_not_applicable,
    described,
    effects,
    first_action,
    kinds,
    near,
)
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResult, KeptResults, MemoryTrends
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.feeding_datasets import DataOptions, SourceFiles, TunedBuffers
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.map_functions import DecodedImages, FunctionGraphs, MapFunction, MapFunctions
from tfdoctor.facts.input.training_inputs import Conversions, ConvertedArray, PaddedInput, SequencePadding
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory, HostMemory
from tfdoctor.facts.machine.samples import Board, GpuBoards
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import BatchNorms, OptimizerWork
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls, RunTraces, TracedDefinition
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.facts.quality import Doubt, Quality
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import (
    Dataset,
    DatasetParameters,
    FileList,
    Layer,
    Operation,
    Program,
    RunSettings,
    Shape,
)
from tfdoctor.facts.savings.given import Unexplained
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown, TracingCost
from tfdoctor.facts.step_time.host_lines import HostLines, LongStepLines, SlowCalls
from tfdoctor.facts.step_time.host_time import LoopBody, PythonOverhead, SingleOperations
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork, Retraced, Retracing
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine
from tfdoctor.facts.steps.steps import SteadySteps, Steps
from tfdoctor.facts.steps.untraced_pace import PassStarts, UntracedPace
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import StepsSeen, TracedWindow
from tfdoctor.recording.program import GpuAccess, RecordedGraph, RecordedOperation
from tfdoctor.terms.kinds import DeviceKind, KeptValue, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.units import Quantity, ms, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Stage,
    StepWork,
    Verdict,
)
# fmt: skip
