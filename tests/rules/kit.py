"""What tests of a rule and its cases are written with: ``from tests.rules.kit import *``."""

from tests.builders import *
from tests.kit import *
from tests.rules.applied import applied, examined, rule_of
from tests.rules.golden_cases import Cases, golden_cases, shown
from tests.rules.run_facts import *
from tests.rules.verdicts import (
    as_finding,
    as_healthy,
    as_not_applicable,
    described,
    effects,
    first_action,
    kinds,
    lines_of_edit,
    near,
)
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.gpu.host_syncs import Detour, Detours, HostSyncs
from tfdoctor.facts.gpu.idle_gaps import GapSize, IdleGaps
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResult, KeptResults, MemoryTrends
from tfdoctor.facts.input.cacheable import Cacheable, CacheablePart, RepeatedWork
from tfdoctor.facts.input.dataset_properties import DatasetProperties, FunctionGraphs
from tfdoctor.facts.input.feeding_datasets import DataOptions, SourceFiles, TunedBuffers
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline, PipelineSegment, StageTime
from tfdoctor.facts.input.map_functions import *
from tfdoctor.facts.input.training_inputs import Conversions, ConvertedArray, PaddedInput, SequencePadding
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory, HostMemory
from tfdoctor.facts.machine.samples import Board, GpuBoards, GpuClock, GpuClocks
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import MOMENTS, BatchNorm, BatchNorms, OptimizerWork
from tfdoctor.facts.phases.run_calls import ChangingNumber, MadeCall, RunCalls, RunTraces, TracedDefinition
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.facts.quality import Doubt, Quality
from tfdoctor.facts.run.device import NO_CUPTI, Device
from tfdoctor.facts.run.framework import JAX, PYTORCH, Framework
from tfdoctor.facts.run.hardware import CPU_UNITS, FLOAT32_ON_AVX512, Hardware, SixteenBit
from tfdoctor.facts.run.program import *
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.facts.run_work.loop_places import LoopLines, LoopPlaces
from tfdoctor.facts.savings.given import Epoch, Price, Unexplained
from tfdoctor.facts.savings.layer_work import FrozenWork
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.scale.replicas import DeviceSkew, Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown, TracingCost
from tfdoctor.facts.step_time.host_time import LoopBody, PythonOverhead
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork, Retraced, Retracing
from tfdoctor.facts.step_time.sampled_steps import HostLines, StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine
from tfdoctor.facts.steps.steps import PS_PER_MS, SteadySteps, Step, Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import *
from tfdoctor.recording.manifest import EndedProcess, Manifest
from tfdoctor.recording.program import *
from tfdoctor.recording.run_log import Bucket, BucketSteps, CallPlace, RunLog, RunProcess, SeenStack, Span
from tfdoctor.rules import all_rules
from tfdoctor.terms.kinds import DeviceKind, InputKind, KeptValue, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.units import Quantity, Unit, ms, ratio
from tfdoctor.terms.verdict import *
from tfdoctor.trace import xplane
from tfdoctor.trace.intervals import Intervals
from tfdoctor.trace.model import EventType

Op = dict[str, Any]
"""An operation as the program record has it."""


def training_step(total_ms: float, *rows: OperationTime, rest: str = "Conv2DBackpropFilter") -> Operations:
    """Build a step with a gradient of type ``rest`` that takes what is left."""
    left = total_ms - sum(row.ms for row in rows)
    return Operations((*rows, OperationTime(name="gradient_tape/model/rest", type=rest, ms=left)))
