"""What tests of a rule and its cases are written with: ``from tests.rules.kit import *``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from tests.rules.run_facts import chained, dataset_of, divided_run, equal_steps, made_call, run_line
from tests.rules.verdicts import (
    as_finding,
    as_healthy,
    as_not_applicable,
    each_is,
    effects,
    figures,
    first_action,
    first_code,
    kinds,
    near,
    said,
    scales,
    table,
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
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
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
    Concern,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Recurrence,
    Remedy,
    RunFailure,
    Severity,
    Stage,
    StepWork,
    Table,
    Verdict,
)

__all__ = [
    "JAX", "Allocator", "Any", "BatchNorms", "Board", "Bound", "Breakdown", "Cacheable", "Callable", "Chart",
    "CompileTime", "Concern", "Conversions", "ConvertedArray", "Cores", "CpuContention", "DataOptions",
    "Dataset", "DatasetParameters", "DatasetProperties", "DecodedImages", "Device", "DeviceKind",
    "DeviceMemory", "Doubt", "EagerWork", "Effect", "FileList", "FillingMemory", "Finding", "Framework",
    "FunctionGraphs", "GpuAccess", "GpuBoards", "GraphLoop", "Grows", "Hardware", "Healthy", "HostLines",
    "HostMemory", "HostSyncs", "IdleGaps", "InputPipeline", "Iterable", "Iterator", "KeptResult", "KeptResults",
    "KeptValue", "Layer", "LineWork", "Location", "LongStepLines", "LongSteps", "LoopBody", "LoopWork",
    "MadeCall", "MapFunction", "MapFunctions", "Mapping", "MatrixUnit", "Measure", "MemoryTrends",
    "NotApplicable", "Operation", "OperationTime", "Operations", "OptimizerWork", "PaddedInput", "PassStarts",
    "Phase", "Program", "PythonOverhead", "Quality", "Quantity", "RecordedGraph", "RecordedOperation",
    "Recording", "Recurrence", "Remedy", "Replicas", "Result", "Retraced", "Retracing", "Rule", "RunCall",
    "RunCalls", "RunFailure", "RunGrowth", "RunLine", "RunPhases", "RunSettings", "RunSteps", "RunTraces",
    "RunWork", "Sequence", "SequencePadding", "Severity", "Shape", "SingleOperations", "SlowCall", "SlowCalls",
    "SourceFiles", "StackSamples", "Stage", "StageTime", "SteadySteps", "StepModel", "StepSource", "StepWork",
    "Steps", "StepsSeen", "Table", "TimedLine", "TracedDefinition", "TracedWindow", "TracingCost", "Trend",
    "TunedBuffers", "Unavailable", "Unexplained", "UntracedPace", "Verdict", "all_ran", "applied", "as_finding",
    "as_healthy", "as_not_applicable", "chained", "chart", "dataset_of", "divided_run", "each_is", "effects",
    "engine", "equal_steps", "executor", "figures", "first_action", "first_code", "graph_operation", "kinds",
    "made_call", "manifest", "marker", "markers", "matmul", "ms", "near", "partial", "program_of", "ratio",
    "recording", "replace", "run_line", "said", "scales", "table", "trace", "v100",
]  # fmt: skip
