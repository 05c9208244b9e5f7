from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.run_work.called_work import ONE_BY_ONE, CalledWork, package_and_name
from tfdoctor.facts.run_work.line_groups import LineGroup, line_groups
from tfdoctor.facts.run_work.run_tables import call_table, line_table
from tfdoctor.rules.slow_start.causes import Cause, CauseKind
from tfdoctor.rules.slow_start.start_load import StartLoad
from tfdoctor.rules.slow_start.unrolled_steps import UnrolledSteps

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "what a script needs before its first step is not decided by one line"

STARTING = (Phase.START, Phase.IMPORTS, Phase.BUILDING)

TENSORFLOW = frozenset({"tensorflow", "keras", "tf_keras"})
"""Packages whose import is TensorFlow's."""

NO_MODULE = frozenset({"", "importlib", "_frozen_importlib", "_frozen_importlib_external"})
"""Packages of which an import tells nothing but that it is one."""

LOADS = frozenset({"load_model", "load_weights", "restore", "read"})

SETTERS = frozenset({"assign", "set_weights", "set_value", "batch_set_value"})
"""Functions that give a variable, or a layer's variables, their values."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a start is reported: a line has to reach the share and its time."""

    share: float = share_limit(
        0.05, "Smallest share of the run that a line of the start takes, as of other savings"
    )
    least_ms: float = limit(
        2000.0, "Shortest time in ms of a module's import, and of a line that builds; most take less than 1 s"
    )
    tensorflow_ms: float = limit(
        15_000.0, "Longest usual time in ms of TensorFlow's import; 2 to 10 s from a local disk"
    )
    loads: float = limit(
        10.0, "Fewest loads at one line that are one model again; ensembles and folds have up to ten", least=2.0
    )
    unrolled: float = limit(
        10.0,
        "Fewest training steps of one graph that a loop should hold; a few turns of a critic are made one by one",
        least=2.0,
    )


def check(
    phases: RunPhases,
    calls: RunCalls,
    load: StartLoad | None,
    unrolled: UnrolledSteps | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Find the lines that make the start slow; imports count unless other programs may be why they are slow."""
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    known = [*_imports(phases, limits), *_built(phases, calls, limits), *_traced(unrolled, limits)]
    slow = [cause for cause in known if cause.saved_ms >= least_ms]
    if load and load.contended and any(cause.imports for cause in slow):
        slow = [cause for cause in slow if not cause.imports]
        if not slow:
            return NotApplicable(reason=_unclear(phases, load))
    causes = sorted(slow, key=lambda cause: -cause.saved_ms)
    longest_ms, start_ms = max((one.saved_ms for one in known), default=0.0), phases.of(*STARTING)
    measures = (
        Measure("time of start, imports and building", ms(start_ms)),
        Measure("longest time of a line that need not take it", ms(longest_ms), ms(least_ms)),
    )
    if not causes:
        return Healthy(summary=_usual(phases), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=_summary(causes, phases),
        evidence=(*measures, *_tables(causes, phases, calls)),
        remedies=tuple(cause.remedy for cause in causes),
        run_effects=tuple(cause.effect for cause in causes),
        # A script may need a module, and a long run does not notice its import.
        severity=Severity.NOTE if all(cause.imports for cause in causes) else None,
        concern=Concern.RUN,
    )


def _usual(phases: RunPhases) -> str:
    imports = f"imports {milliseconds(phases.of(Phase.IMPORTS))} of it"
    start, share = milliseconds(phases.of(*STARTING)), percent(phases.share(*STARTING))
    return f"Start, imports and building take {start} ({share} of the run), {imports}"


def _unclear(phases: RunPhases, load: StartLoad) -> str:
    return (
        f"imports take {milliseconds(phases.of(Phase.IMPORTS))}, but other programs used {number(load.others)} of "
        f"{number(load.usable)} cores meanwhile; record on an idle machine"
    )


def _imports(phases: RunPhases, limits: Limits) -> Iterator[Cause]:
    """Yield the imports of other modules, and TensorFlow's where it takes unusually long.

    Where none is known as TensorFlow's, another module imports it: the longest import may be that one. Packages
    that samples show at work after their import are needed.
    """
    later = [line for line in phases.lines if line.phase is not Phase.IMPORTS]
    used = {package_and_name(name)[0] for line in later for name in (line.calls, line.runs)}
    groups = [group for group in line_groups(phases.at(Phase.IMPORTS)) if group.at]
    others = [group for group in groups if _module(group) not in TENSORFLOW]
    needed = others[:1] if len(others) == len(groups) else []
    for group in groups:
        module = _module(group)
        if group.at is None or group in needed:
            continue
        if module not in TENSORFLOW | NO_MODULE | used:
            yield Cause.of_group(CauseKind.MODULE, group, group.at, module)
        elif module in TENSORFLOW and group.ms >= limits.tensorflow_ms:
            yield Cause.of_group(CauseKind.TENSORFLOW, group, group.at, module)


def _built(phases: RunPhases, calls: RunCalls, limits: Limits) -> Iterator[Cause]:
    """Yield loads that a loop repeats, and loops that set weights or compute in Python while the model is built.

    Loops that make layers are necessary.
    """
    for call in calls.of(RunCall.BUILD):
        loads = call.name.rpartition(".")[2] in LOADS
        if loads and call.looped and call.count >= limits.loads and call.at:
            yield Cause.of_call(call, call.at)
    for group in line_groups(phases.at(Phase.BUILDING)):
        if group.at is None or not any(line.repeats for line in group.lines):
            continue
        if package_and_name(group.calls)[1] in SETTERS:
            yield Cause.of_group(CauseKind.WEIGHTS, group, group.at)
        elif group.work in ONE_BY_ONE and group.work is not CalledWork.OPERATIONS:
            yield Cause.of_group(CauseKind.PYTHON, group, group.at)


def _traced(unrolled: UnrolledSteps | None, limits: Limits) -> Iterator[Cause]:
    """Yield the first trace of a function whose graph has many training steps."""
    if unrolled and unrolled.steps >= limits.unrolled:
        yield Cause.of_steps(unrolled)


def _module(group: LineGroup) -> str:
    """Return the package that a line imports; "" is unknown."""
    return package_and_name(group.calls)[0]


def _tables(causes: Sequence[Cause], phases: RunPhases, calls: RunCalls) -> tuple[Table, ...]:
    places = {cause.at for cause in causes}
    groups = [group for group in line_groups(phases.at(*STARTING)) if group.at in places]
    loaded = [call for call in calls.of(RunCall.BUILD) if call.at in places]
    return (*line_table(groups, phases.total_ms), *call_table(loaded, phases.total_ms))


def _summary(causes: Sequence[Cause], phases: RunPhases) -> str:
    share = percent(causes[0].time_ms / phases.total_ms)
    text = f"{causes[0].summary} ({share} of the run)"
    if len(causes) == 1:
        return text
    all_ms = milliseconds(sum(cause.time_ms for cause in causes))
    others = ", ".join(location(cause.at) for cause in causes[1:])
    return f"{text}; with {others} {all_ms}"
