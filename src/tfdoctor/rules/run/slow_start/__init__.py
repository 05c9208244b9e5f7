from tfdoctor.facts.kit import by_key
from tfdoctor.facts.phases.run_calls import TracedDefinition
from tfdoctor.facts.run_work.line_groups import NO_MODULE, package_and_name
from tfdoctor.families.kit import *
from tfdoctor.rules.run.slow_start.start_load import StartLoad

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


STARTING = (Phase.START, Phase.IMPORTS, Phase.BUILDING)
TENSORFLOW = frozenset({"tensorflow", "keras", "tf_keras"})  # Packages whose import is TensorFlow's
LOADS = frozenset({"load_model", "load_weights", "restore", "read"})
# Functions that give a variable, or a layer's variables, their values.
SETTERS = frozenset({"assign", "set_weights", "set_value", "batch_set_value"})


class Limits(CallLimits):
    least_ms: float = limit(2000.0)
    tensorflow_ms: float = limit(15_000.0)
    loads: float = limit(10.0, least=2.0)
    unrolled: float = limit(10.0, least=2.0)


MUCH = 0.25  # Share of the graph's operations in one layer, from which its loop takes as much of the tracing
LATER = Remedy("Import the module where it is needed, or not at all", CODE["later"])
TF_RANGE = Remedy("Let TensorFlow run the loop that holds this line", CODE["tf-range"])
WHOLE_BATCH = Remedy("Compute it for all at once, or let TensorFlow run the loop", CODE["whole-batch"])
FROM_DISK = Remedy("Install the packages on a local disk, with compiled files", CODE["local-disk"])


def check(
    phases: RunPhases, calls: RunCalls, load: StartLoad | None, program: Program | None, traces: RunTraces | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Find the lines that make the start slow; imports count unless other programs may be why they are slow."""
    known = list[RunPlace]()
    # Packages that samples show at work after their import are needed.
    later = [line for line in phases.lines if line.phase is not Phase.IMPORTS]
    used = {package_and_name(name)[0] for line in later for name in (line.calls, line.runs)}
    groups = [(one, package_and_name(one.calls)[0]) for one in line_groups(phases.at(Phase.IMPORTS)) if one.at]
    others = [group for group, module in groups if module not in TENSORFLOW]
    # Where none is known as TensorFlow's, another module imports it: the longest import may be that one.
    excepted = others[:1] if len(others) == len(groups) else []
    for group, module in groups:
        slow_import, what, remedy = module not in NO_MODULE | used, "{name}", LATER
        if module in TENSORFLOW:
            slow_import, what, remedy = group.ms >= limits.tensorflow_ms, "TensorFlow", FROM_DISK
        if slow_import and group not in excepted:
            place = RunPlace(at=group.at, phase=Phase.IMPORTS, ms=group.ms, name=module, remedies=(remedy,))
            known.append(replace(place, says=f"The import of {what} at {{at}} takes {PART}"))
    known += _built(phases, calls, program, traces, limits)
    known.sort(key=lambda place: -place.saved_ms)
    slow = SlowPlaces.of(phases, known, max(limits.least_ms, limits.share * phases.total_ms))
    needed = tuple(place for place in slow.places if place.phase is not Phase.IMPORTS)
    imports = milliseconds(phases.of(Phase.IMPORTS))
    if load and load.cores.contended and needed != slow.places:
        if not needed:
            taken = f"{number(load.cores.others)} of {with_noun(load.cores.usable, 'core')}"
            busy = f"other programs used {taken} meanwhile; record on an idle machine"
            return NotApplicable(reason=f"imports take {imports}, but {busy}")
        slow = replace(slow, places=needed)
    longest = "longest time of a line that need not take it"
    measures = slow.measures("time of start, imports and building", longest, *STARTING)
    if not slow.places:
        start, share = milliseconds(phases.of(*STARTING)), percent(phases.share(*STARTING))
        summary = f"Start, imports and building take {start} ({share} of the run), imports {imports} of it"
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    # A script may need a module, and a long run does not notice its import.
    severity = None if needed else Severity.NOTE
    return slow.finding(measures, slow.details(calls.of(RunCall.BUILD), *STARTING), severity=severity)


def _built(
    phases: RunPhases, calls: RunCalls, program: Program | None, traces: RunTraces | None, limits: Limits
) -> Iterator[RunPlace]:
    """Yield loads that a loop repeats, and loops that set weights or compute in Python while the model is built.

    Loops that make layers are necessary. Then the first tracing of a function whose graph has many training steps,
    since a loop in Python made them: its place is the first line inside of the loop, and tracing one step remains.
    """
    for call in calls.of(RunCall.BUILD):
        name = call.name.rpartition(".")[2]
        if name in LOADS and call.looped and call.count >= limits.loads and call.at:
            yield RunPlace(
                at=call.at, phase=Phase.BUILDING, ms=call.ms, name=name, times=call.count, left=1.0 / call.count,
                says=f"A loop calls {{name}} {{times}} times at {{at}}, which takes {PART}",
                remedies=(Remedy("Load it once, before the loop", CODE["load-once"]),),
            )  # fmt: skip
    for group in line_groups(phases.at(Phase.BUILDING)):
        if not group.at or not any(line.repeats for line in group.lines):
            continue
        place = RunPlace(at=group.at, phase=Phase.BUILDING, ms=group.ms)
        if package_and_name(group.calls)[1] in SETTERS:
            says = f"Weights are set one by one at {{at}}, which takes {PART}"
            yield replace(place, says=says, remedies=(Remedy("Set all weights at once", CODE["all-weights"]),))
        elif group.work in ONE_BY_ONE and group.work is not CalledWork.OPERATIONS:
            says = "A loop in Python at {at} takes {ms} while the model is built ({share} of the run)"
            remedy = Remedy("Compute with whole arrays while the model is built", CODE["vectorized"])
            yield replace(place, says=says, remedies=(remedy,))
    operations = program.training if program else ()
    lines = Counter(one.at for one in operations if one.at)
    # Each step writes most variables once. A function that is traced again has several graphs.
    written = ((one.graph, one.sources[0]) for one in operations if UPDATES.fullmatch(one.type) and one.sources)
    steps = max(Counter(Counter(written).values()).items(), key=lambda one: one[1], default=(0, 0))[0]
    for function in traces.functions if traces and steps >= limits.unrolled else ():
        begins = function.defined
        own = [at for at in lines if begins and at.path == begins.path and at.line > begins.line]
        if inside := [at for at in own if lines[at] >= steps]:
            made = f"its graph has {number(steps)} training steps, made at {{at}} ({{share}} of the run)"
            yield RunPlace(
                at=min(inside, key=lambda at: at.line), phase=Phase.TRACING, ms=function.first_ms,
                name=function.name, left=1.0 / steps, says=f"Tracing {{name}} takes {{ms}}: {made}",
                remedies=(TF_RANGE,),
            )  # fmt: skip
            return
    longest = max(traces.functions, key=lambda one: one.first_ms, default=None) if traces else None
    yield from _in_layers(program, longest, limits) if program and longest else ()


def _in_layers(
    program: Program, traced: TracedDefinition, limits: Limits
) -> Iterator[RunPlace]:  # fmt: skip
    """Yield lines of layers at which a loop in Python makes the same operations again, with a part of the tracing.

    A line that several layers share, such as that of the gradients, is none of theirs. Blocks of a deep model are
    layers of their own.
    """
    operations, known = program.training, {layer.name for layer in program.layers}
    layers = by_key((one.layer, one) for one in operations if one.layer in known)
    shared = Counter(at for own in layers.values() for at in {one.at for one in own})
    for layer, own in layers.items():
        lines = by_key((one.at, one.type) for one in own if one.at and shared[one.at] == 1)
        at, types = max(lines.items(), key=lambda line: len(line[1]), default=(None, []))
        again = [times for kind, times in Counter(types).items() if times >= limits.unrolled and kind != "Const"]
        share = len(own) / len(operations)
        if at and again and share >= MUCH:
            made = f"{number(len(own))} of the {number(len(operations))} operations of its graph are the layer's"
            yield RunPlace(
                at=at, phase=Phase.TRACING, ms=share * traced.first_ms, left=1.0 / min(again), name=layer,
                says=f"A loop in Python makes operations of {{name}} {number(min(again))} times at {{at}}: {made}, "
                f"and with them {PART} of tracing and compiling", remedies=(WHOLE_BATCH,),
            )  # fmt: skip
