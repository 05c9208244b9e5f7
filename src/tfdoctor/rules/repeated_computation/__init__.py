from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.repeated_computation.repeated_results import Constant, Repeat, RepeatedResults

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (found(RepeatedResults, lambda work: work.ms),)
BY_HAND = "which line keeps the value for the others is a choice in the code of the step"

SHOWN = 5  # Pairs of lines that are shown: those of most time


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.03)
    part: float = share_limit(0.1)
    least_ms: float = limit(0.1)


def check(work: RepeatedResults, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Add up what is computed again, and compare it with the compute time."""
    share = operations.part(work.ms).share
    evidence = (
        Measure("time computing again what is known, per step", ms(work.ms)),
        Measure.share("share of the compute time computing again what is known", share, limits.share),
    )
    least_ms = max(limits.least_ms, limits.part * work.ms)
    repeats = [one for one in work.repeats if one.ms >= least_ms]
    constants = [one for one in work.constants if one.ms >= least_ms]
    if share < limits.share or not (repeats or constants):
        summary = f"{percent(share)} of the compute time computes again what is known"
        return Healthy(summary=summary, evidence=evidence)
    lines: list[tuple[Repeat | Constant, tuple[str, ...], Location | str, Location | None]]
    lines = [(one, one.layers, one.first or "unknown", one.again) for one in repeats[:SHOWN]]
    lines += [(one, (), "every step", one.at) for one in constants[:SHOWN]]
    table = [
        (_name(one.rows, layers), first, again or "unknown", count(len(one.rows)), ms(one.ms))
        for one, layers, first, again in lines
    ]
    columns = ("computed", "first at", "again at", "operations", "time per step")
    remedies: dict[Location | None, Remedy] = {}  # one for each line
    for one in repeats[:SHOWN]:
        first = f" of {location(one.first)}" if one.first and one.first != one.again else ""
        action = f"Compute it once and use the result{first} again"
        remedies.setdefault(one.again, Remedy(action, CODE["reuse"], one.again))
    for constant in constants[:SHOWN]:
        remedies.setdefault(constant.at, _once(constant))
    return Finding(
        summary="; ".join(_sentences(repeats, constants)),
        evidence=(*evidence, Table(columns, tuple(table))),
        remedies=tuple(remedies.values()),
        effects=tuple(_effects(repeats, constants)),
    )


def _name(rows: Iterable[OperationTime], layers: tuple[str, ...] = ()) -> str:
    """Return the layers or the types of operations, those of most time first."""
    types = dict.fromkeys(row.type for row in sorted(rows, key=lambda row: -row.ms))
    return ", ".join((layers or tuple(types))[:3])


def _once(constant: Constant) -> Remedy:
    if not constant.reads:
        return Remedy("Compute it once, before the training", CODE["once"], constant.at)
    lines = " and ".join(map(location, constant.reads[:SHOWN]))
    action = (
        f"If nothing assigns the variables read at {lines} between the steps, compute it once before the loop; "
        "otherwise after each assignment"
    )
    return Remedy(action, CODE["after-assignment"], constant.at)


def _sentences(repeats: list[Repeat], constants: list[Constant]) -> Iterator[str]:
    """Yield what is repeated, with its time."""
    if repeats:
        places = map(location, filter(None, (repeats[0].first, repeats[0].again)))
        lines = " and ".join(dict.fromkeys(places))
        time = milliseconds(sum(one.ms for one in repeats))
        yield f"Each step computes the same twice or more{f' at {lines}' if lines else ''}: {time} per step"
    if constants:
        at = f" at {location(constants[0].at)}" if constants[0].at else ""
        read = any(one.reads for one in constants)
        when = "change only where Python assigns a variable" if read else "never change"
        time = milliseconds(sum(one.ms for one in constants))
        yield f"Results that {when} are computed in each step{at}: {time} per step"


def _effects(repeats: list[Repeat], constants: list[Constant]) -> Iterator[Effect]:
    for one in repeats:
        yield from (row.scaled(0.0) for row in one.rows)
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in one.gradients)
        yield from (replace(row.scaled(1.0 - spared, Bound.AT_MOST), narrows=True) for row, spared in one.sums)
    for constant in constants:
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in constant.rows)
