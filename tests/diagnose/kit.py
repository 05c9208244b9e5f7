"""What tests here are written with: ``from tests.diagnose.kit import *``."""

import functools
import inspect

from typer.testing import CliRunner

from scripts.synthetic import gpu, job
from scripts.synthetic.network import Network
from tests import agreement
from tests.builders import (
    even_steps,
    executor,
    graph_operation,
    iterator,
    line,
    manifest,
    markers,
    recording,
    stage_time,
    trace,
    v100,
    wait,
)
from tests.cases import sure
from tests.kit import *
from tests.report.diagnoses import saving
from tests.rules.run_facts import run_line
from tests.rules.verdicts import as_finding, as_not_applicable, near
from tests.run_logs import FOLDER
from tfdoctor import cli
from tfdoctor.cli.gates import exit_code
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose.accounts import accounts, unexplained
from tfdoctor.diagnose.diagnose import diagnose, placed
from tfdoctor.diagnose.energy import energy_account, with_energy
from tfdoctor.diagnose.engine import only_traced
from tfdoctor.diagnose.order import in_order, order
from tfdoctor.diagnose.rating import RunPricing
from tfdoctor.diagnose.summary import devices, machine
from tfdoctor.diagnose.summary.account import run_account
from tfdoctor.diagnose.summary.profile import FEW, LEAST, SHOWN, profile, step_rows
from tfdoctor.diagnose.summary.timeline import NEITHER, TimelineWork, about, few, marks_of, timeline
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.hosts import Hosts
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import *
from tfdoctor.diagnosis.step import PARTS, Account, AccountState
from tfdoctor.diagnosis.work import Profile, RunAccount
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.matmuls import OneDnn
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import BatchNorms
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongLine, LongSteps, RunLongLines, RunSteps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.facts.savings.given import EnergyPrices, Epoch, Unexplained
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import PARTS as EXPOSED
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown, TracingCost
from tfdoctor.facts.step_time.host_time import PartEvent, PartEvents, PythonOverhead
from tfdoctor.facts.step_time.sampled_steps import HostLines, StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps, UntracedPace
from tfdoctor.facts.tpu.time import TpuLaunches
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import *
from tfdoctor.recording.manifest import CapturePlan, Ending, Manifest, MissingPart, Sampling
from tfdoctor.recording.program import *
from tfdoctor.recording.run_log import Bucket, CallPlace, ProcessEnd, RunLog, RunProcess
from tfdoctor.recording.samples import GpuSample, MachineSample
from tfdoctor.report import terminal
from tfdoctor.report.formats import FORMATS, html, md, render
from tfdoctor.report.formats import json as json_format
from tfdoctor.report.words import order as sentences
from tfdoctor.rulebook.config import FailOn
from tfdoctor.rules import all_rules
from tfdoctor.terms.kinds import DeviceKind, EnergySource, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.record import Record
from tfdoctor.terms.run_time import PhaseSegment
from tfdoctor.terms.units import Unit, ms
from tfdoctor.terms.verdict import *
from tfdoctor.trace import xplane
from tfdoctor.trace.model import Trace
from tfdoctor.trace.xprof import InputVerdict, Opinion

SEEN = Measure("what was seen", ms(1.0))
COMPUTE: dict[str, Any] = {"device": 100.0}


def shown(value: object) -> str:
    """Return a record by its fields that say something, numbers with six digits."""
    match value:
        case bool() | str():
            return str(value)
        case float():
            return f"{value:.6g}"
        case Mapping():
            return ", ".join(f"{key} {shown(one)}" for key, one in value.items() if one)
        case tuple() | frozenset():
            return "; ".join(map(shown, sorted(value) if isinstance(value, frozenset) else value))
        case Record():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            told = (
                f"{name} {shown(one)}" for name, one in fields if one is not None and one is not False and one != ""
            )
            return ", ".join(one for one in told if not one.endswith(" "))
        case _:
            return str(value)


def rule(check: Callable[..., Verdict], name: str = "", **more: Any) -> Rule:
    called = name or check.__name__.replace("_", "-")
    made = Rule(called, Topic.INPUT, "0.1.0", RuleDoc("A title", {}), (), check, check, check)
    return replace(made, **more)


def finding(*effects: Effect | RunEffect, **more: Any) -> Finding:
    of_step = tuple(effect for effect in effects if isinstance(effect, Effect))
    of_run = tuple(effect for effect in effects if isinstance(effect, RunEffect))
    stated = {"evidence": (SEEN,), "remedies": (Remedy("Change it"),), "effects": of_step, "run_effects": of_run}
    return Finding(summary="Something is slow", **(stated | more))


def states(name: str, *effects: Effect | RunEffect, general: bool = False, **more: Any) -> Rule:
    """A rule that finds this fault."""
    return rule(lambda: finding(*effects, **more), name, general=general)


def part(saved: float, subject: str = "part", **more: Any) -> Effect:
    """A change that saves so many ms of the device's work."""
    return Effect(Stage.DEVICE, 0.0, subject, ms(saved), **more)


def chart_of(*facts: object, slowdown: float = 1.0, on: Any = DeviceKind.GPU, **parts: Any) -> Chart:
    """A step of these parts in ms, with these facts; segments of the input are the model's."""
    breakdown = Breakdown.of(**parts)
    ahead = tuple(one for one in facts if isinstance(one, PipelineSegment))
    model = StepModel(device=on, exposed=breakdown.median, segments=ahead, slowdown=slowdown)
    return Chart([breakdown, model, *(one for one in facts if one not in ahead)])


def overlapped(made: float, **parts: Any) -> Chart:
    """A step beside which input is made in so many ms."""
    return chart_of(PipelineSegment({"map": made}, overlapped=True), **parts)


def bound_by_input() -> Chart:
    """Input made beside the step takes 50 ms, the compute 10."""
    return overlapped(50.0, input=40.0, device=10.0)


INPUT = states("input-bound", Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST))
MATMUL = states("float32-matmul", part(4))

times = st.floats(0, 50).map(lambda value: round(value, 3))
effects = st.builds(
    Effect,
    stage=st.sampled_from([Stage.DEVICE, Stage.HOST, Stage.TRANSFER, Stage.BETWEEN]),
    scales=st.floats(0, 1),
    subject=st.sampled_from(["", "a", "b"]),
    of=st.floats(0, 40).map(ms),
    bound=st.sampled_from(Bound),
) | st.builds(
    Effect, st.just(Stage.INPUT), st.floats(0, 1), st.sampled_from(["", "map"]), bound=st.sampled_from(Bound)
)


def diagnosed(recorded: Recording) -> Diagnosis:
    return diagnose(recorded, all_rules(), "train.py", ask_xprof=False)


# Runs, for the stages that price and order findings by the run


def phases_of(times: Mapping[Phase, float], *, whole: bool = True) -> RunPhases:
    """A run of these phases, of which those around the training come once."""
    around = (Phase.START, Phase.IMPORTS, Phase.PREPARING, Phase.BUILDING, Phase.END)
    once = sum(time for phase, time in times.items() if phase in around)
    missing = "" if whole else "only the traced window is known"
    return RunPhases(total_ms=sum(times.values()), times=times, once_ms=once, whole=whole, missing=missing)


def steps_of(count: int, each_ms: float, long: LongSteps | None = None) -> RunSteps:
    """Steps that are alike, and the time of long ones on top."""
    total = count * each_ms + (long.beyond_ms if long else 0.0)
    alike: dict[str, Any] = {"median_ms": each_ms, "p10_ms": each_ms, "p90_ms": each_ms}
    return RunSteps(
        at=None, source="keras-fit", count=count, total_ms=total, mean_ms=total / count, long=long, **alike
    )


def run_chart(phases: RunPhases | None, steps: RunSteps | None = None, *more: object) -> Chart:
    """The chart of a run; what is not given is unavailable."""
    known = [part for part in (phases, steps, *more) if part is not None]
    step = next((part for part in more if isinstance(part, StepModel)), None)
    if phases is not None:
        known.append(RunModel(phases, steps, step))
    kinds = {RunPhases, RunSteps, StepModel, RunModel, RunCalls, RunEnding, RunLongLines, Samples, Recording}
    return Chart(known, {kind: Unavailable("not recorded") for kind in kinds - {type(part) for part in known}})
