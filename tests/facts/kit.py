"""What tests of facts are written with: ``from tests.facts.kit import *``."""

from collections.abc import Set as AbstractSet
from inspect import signature
from itertools import groupby
from math import prod

from tests.builders import *
from tests.cases import answers, nearly, unavailable
from tests.h100 import TIMED_MS, h100
from tests.kit import *
from tests.run_logs import FOLDER, Run
from tests.xspaces import TRACES
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.gpu.activity import Collectives, GpuActivities, HostMemoryKind, Transfer, Transfers
from tfdoctor.facts.gpu.host_syncs import Detours, HostSyncs
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleCause, IdleGaps
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResult, KeptResults, MemoryTrends
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable, spec_bytes
from tfdoctor.facts.input.feeding_datasets import SourceFiles, TunedBuffers
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment, StageTime
from tfdoctor.facts.input.iterators import Iterators, Node, consumer
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.machine.cores import CROWDED, Cores, CpuContention, Threads
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory, MemoryWanted
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.dataflow import Dataflow, Source
from tfdoctor.facts.operations.kernel_kinds import Kernel, KernelRole
from tfdoctor.facts.operations.matmuls import MatrixUnit, OneDnn
from tfdoctor.facts.operations.operation_time import ComputePart, OperationTime, layer_table
from tfdoctor.facts.operations.operations import Operations, Roofline
from tfdoctor.facts.operations.shapes import TracedShapes, einsum_flops, flops_of, shared_dimension_flops
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.facts.phases.run_calls import NUMBERED, ChangingNumber, MadeCall, RunCalls, RunTraces
from tfdoctor.facts.phases.run_course import Floats, RunCourse
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import MOST_SPANS, RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines, RunSteps, long_steps
from tfdoctor.facts.quality import Quality
from tfdoctor.facts.run.device import NO_CUPTI, NO_GPU, NO_KERNELS, NO_PERMISSION, Device, work_lines
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.run.hardware import AMD_RATES, GPU_RATES, Hardware, SixteenBit
from tfdoctor.facts.run.program import *
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms, changes_weights, module_runs, takes_gradients
from tfdoctor.facts.run_work.line_groups import CalledWork, called_work, line_groups
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts
from tfdoctor.facts.savings.dispatch import Dispatch, DispatchShares
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.facts.savings.given import Unexplained
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups, loop_of
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import TRUSTED_RESIDUAL, StepModel
from tfdoctor.facts.scale.hosts import ClockSkew, Comparison, HostSteps, MatchedBy
from tfdoctor.facts.step_time.breakdown import INPUT_SHARE, PARTS, READY_MS, Breakdown, TracingCost
from tfdoctor.facts.step_time.host_time import LoopBody, PartEvents
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork, Retracing
from tfdoctor.facts.step_time.sampled_steps import HostLines, StackSamples, sampling_began, times_of
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine
from tfdoctor.facts.steps.steps import FEWEST_STEPS, SteadySteps, Step, Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps, UntracedPace, slowdown
from tfdoctor.facts.steps.xla_steps import TimedProgram, compiled_steps
from tfdoctor.facts.timeline.activity import Activity, Work, kernel_operations
from tfdoctor.facts.timeline.host_events import leaves, operation_label, trainer_waits
from tfdoctor.facts.tpu.time import TpuLaunches, TpuTime
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import *
from tfdoctor.recording.files import Notes, run_log
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
)
from tfdoctor.terms.kinds import DeviceKind, EnergySource, KeptValue, Part, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import *
from tfdoctor.trace import xplane
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction, Pass
from tfdoctor.trace.intervals import Intervals
from tfdoctor.trace.model import Event, EventType, Line, Trace, TypeTable


@cache
def recorded_trace(name: str) -> Chart:
    """Return the chart of a trace that lies beside these tests."""
    with TemporaryDirectory() as folder:
        data = gzip.decompress((Path(__file__).parent / "traces" / f"{name}.xplane.pb.gz").read_bytes())
        (Path(folder) / "host.xplane.pb").write_bytes(data)
        opened = Recording.open(Path(folder))
        return Chart([xplane.read(opened.traces[0]), opened])


# What facts say, in golden texts

LONGEST = 100  # characters of a text in a record


def in_words(value: object) -> str:
    """Return a value in a few words: of a record, what is not its default; of a number, five digits."""
    text = str(value)
    match value:
        case float() | np.floating():
            text = f"{float(value):.5g}"
        case Location():
            text = f"{value.path}:{value.line}"
        case Record() | Mapping():
            items = stated(value) if isinstance(value, Record) else value.items()
            text = ", ".join(f"{in_words(key)} {in_words(one)}" for key, one in items)
        case AbstractSet() if len(value) > 3 and all(isinstance(one, int) for one in value):
            text = f"{len(value)} from {min(value)} to {max(value)}"
        case AbstractSet() | tuple() | list():
            parts = [f"({in_words(one)})" if isinstance(one, tuple | list) else in_words(one) for one in value]
            text = "; ".join(sorted(parts) if isinstance(value, AbstractSet) else parts)
        case _:
            pass
    return text or "nothing"


def stated(record: Record) -> Iterable[tuple[str, object]]:
    """Yield the fields of a record that are not their defaults, then the plain values that it computes of them."""
    kind = type(record)
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    for name in names:
        value = getattr(record, name)
        default = usual.get(name, Told)
        if value != (default.factory() if hasattr(default, "factory") else default):
            cut = isinstance(value, str) and len(value) > LONGEST
            yield name, f"{value[:LONGEST]} …" if cut else value
    for name in dir(kind):
        if isinstance(getattr(kind, name), property) and not name.startswith("_"):
            value = getattr(record, name)
            if value and isinstance(value, bool | int | float | str | Location):
                yield name, value


Known = TypeVar("Known")


def sure(value: Known | None) -> Known:
    """Return what must be there."""
    assert value is not None
    return value


def fields(of: object, names: str) -> dict[str, object]:
    """Return what a fact says by these names: the part of it that a case is about."""
    return {name: getattr(of, name) for name in names.split()}


def told_of(found: object) -> Iterable[str]:
    """Yield the lines of a golden text that say this: one, or one for each of its parts that are records."""
    match found:
        case Record():
            parts = dict(stated(found))
            yield from told_of(parts) if any(map(of_records, parts.values())) else [in_words(found)]
        case Mapping() if any(of_records(one) or isinstance(one, Record | Mapping) for one in found.values()):
            for key, one in found.items():
                lines = [*told_of(one)] if of_records(one) else [in_words(one)]
                yield f"{in_words(key)}: {lines[0]}"
                yield from (f"  {line}" for line in lines[1:])
        case tuple() | list() if found:
            yield from map(in_words, found)
        case _:
            yield in_words(found)


def of_records(found: object) -> bool:
    return isinstance(found, tuple | list) and any(isinstance(one, Record) for one in found)


def answer(case: Callable[[], object]) -> object:
    """Ask a case that needs no values."""
    return case()


class Told:
    """Cases by their names; all that the facts say of them is in one golden text beside the test.

    A case is a function that returns the fact, or what it is about of it; a decorated one has the case's name.
    Cases that ask the same of different values, some of them or one, are added by ``told[ask] = {name: values}``.
    """

    def __init__(self) -> None:
        self.cases: dict[str, Callable[..., object]] = {}

    def __call__(self, case: Callable[..., object]) -> Callable[..., object]:
        self.add(case.__name__.replace("_", " "), case)
        return case

    def __setitem__(self, ask: Callable[..., object], rows: Mapping[str, Any]) -> None:
        for name, values in rows.items():
            self.add(name, partial(ask, *(values if isinstance(values, tuple | list) else (values,))))

    def add(self, name: str, case: Callable[..., object]) -> None:
        assert name not in self.cases, name
        self.cases[name] = case

    def lines(self, root: Path | None = None) -> Iterable[str]:
        """Yield the text; a case that takes a ``folder`` has one of its own, called FOLDER in the text."""
        for number, (name, case) in enumerate(self.cases.items()):
            folders = [(root or Path()) / str(number)] if "folder" in signature(case).parameters else []
            yield f"## {name}"
            try:
                for folder in folders:
                    folder.mkdir()
                told = [*told_of(case(folder=folders[0]) if folders else case())]
            except (Unavailable, TfdoctorError) as why:
                kind = "unavailable" if isinstance(why, Unavailable) else type(why).__name__
                told = [f"{kind}: {why}"]
            yield from (text.replace(str(*folders), "FOLDER") if folders else text for text in told)
            yield ""

    def test(self, name: str) -> Callable[..., None]:
        """Return the test that compares all of them."""

        def test(golden: Callable[[str, str], None], tmp_path: Path) -> None:
            golden(f"{name}.txt", "\n".join(self.lines(tmp_path)))

        return test


class Names(dict[str, list[str]]):
    """Names under headings in a golden text beside the test, each with what is told of it.

    A new one is a line that ends with a bar, until the text is written anew.
    """

    def __init__(self, module: str, name: str) -> None:
        self.path = Path(module).parent / "golden" / f"{name}.txt"
        for part in self.path.read_text("utf-8").removeprefix("## ").split("\n## "):
            heading, *rows = part.splitlines()
            self[heading] = [row.partition(" |")[0] for row in rows if " |" in row]

    def test(self, tell: Callable[[str], object] | Mapping[str, Callable[[str], object]]) -> Callable[..., None]:
        """Return the test that compares what a function tells of the names: one for all, or each heading's."""

        def test(golden: Callable[[str, str], None]) -> None:
            parts = []
            for heading, names in self.items():
                ask = tell[heading] if isinstance(tell, Mapping) else tell
                parts.append(
                    "\n".join([f"## {heading}", "", *(f"{one} | {in_words(ask(one))}" for one in names), ""])
                )
            golden(self.path.name, "\n".join(parts))

        return test
