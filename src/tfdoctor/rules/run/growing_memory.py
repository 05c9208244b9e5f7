from tfdoctor.facts.growth.memory_trends import KeptResult, KeptResults, kept_table, makes_operations
from tfdoctor.facts.phases.run_growth import Grows
from tfdoctor.families.kit import *
from tfdoctor.terms.kinds import KeptValue

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    growth: float = limit(100e6)
    along: float = limit(32e6)
    share: float = limit(0.05)
    seconds: float = limit(20.0)
    kept_seconds: float = limit(8.0)
    once: float = share_limit(0.5)
    models: float = limit(3.0)


ONCE = "most of the run is what comes once, such as loading data, so its memory shows no trend"
MODELS = frozenset(["Functional", "Model", "Sequential"])  # Types of live objects that are models of Keras
TENSORS = frozenset(["EagerTensor", "Tensor"])  # Types of live objects that are tensors


def check(  # noqa: PLR0913, PLR0917 - what grows, what explains it, and what is no leak
    phases: RunPhases, memory: MemoryTrends, growth: RunGrowth, calls: RunCalls | None, program: Program | None,
    kept: KeptResults | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report memory that certainly grows and does not level off."""
    keeps = kept.only(KeptValue.RESULT) if kept else None
    time = milliseconds(1000 * growth.seconds)
    if growth.seconds < (limits.kept_seconds if keeps else limits.seconds):
        return NotApplicable(reason=f"memory was recorded for {time} only, in which it still warms up")
    if phases.total_ms - phases.recurring_ms > limits.once * phases.total_ms:
        return NotApplicable(reason=ONCE)
    if max([call.models or 0 for call in calls.of(RunCall.FIT)] if calls else (), default=0) >= limits.models:
        return NotApplicable(reason="models are fitted one after another, so tuning-loop judges the memory")
    counts = growing_counts(growth)
    least = limits.along if counts else limits.growth
    large = [m for m in memory.memories if m.grown >= max(least, limits.share * m.trend.first)]
    growing = [one for one in large if one.trend.grows and not one.fills_reserved]
    shown = max(growing, key=lambda one: one.severity, default=memory.memories[0])
    evidence = (
        Measure(f"{shown.name} at the beginning", nbytes(shown.trend.first)),
        Measure("growth in the run", nbytes(max(0.0, shown.grown)), nbytes(least)),
        Measure("growth per hour", nbytes(max(0.0, 3600 * shown.trend.slope))),
        *([Measure("limit of the memory", nbytes(shown.limit))] if shown.limit else ()),
        *counts_table(counts),
    )
    last = quantity(nbytes(shown.trend.last))
    if not growing:  # less than a limit, reserved before, or a plateau
        how = ", which is little" if shown.trend.grows else ", and not steadily"
        if shown.trend.grows and shown.fills_reserved:
            how = ", where memory was reserved before, as by an array that fills"
        change = f"grew by {quantity(nbytes(shown.grown))} in {time}{how}"
        if shown.grown <= 0:
            change = f"did not grow in {time}: it was {last} at the end"
        return Healthy(summary=f"{shown.name.capitalize()} {change}", evidence=evidence, concern=Concern.RUN)
    # At most a note where the growth may be what the run must keep: a cache that fills, or results.
    caches = any("Cache" in dataset.kind for dataset in (program.datasets if program else ()))
    first_pass = caches and (calls is None or calls.epochs <= 1)
    keeping = (first_pass or not (counts or phases.of(Phase.STEPS))) and not shown.ran_out
    severity = Severity.NOTE if keeping else shown.severity
    # Where traced functions hold the memory, retracing is what to change.
    traced = bool(counts) and counts[0].what is Grows.FUNCTIONS
    levels = f"from {quantity(nbytes(shown.trend.first))} to {last} in {time}"
    ends, along = (f", {shown.end}" if shown.end else ""), (f"; {clause(counts[0])}" if counts else "")
    return Finding(
        summary=f"{shown.name.capitalize()} grew {levels}{ends}{along}" + (f"; {keeps.clause}" if keeps else ""),
        evidence=(*evidence, *kept_table(kept, keeps)),
        remedies=_remedies(counts, calls, makes_operations(counts, phases), keeps),
        severity=severity,
        concern=Concern.RUN,
        failure=RunFailure.AHEAD if severity is Severity.CRITICAL and not traced else RunFailure.NONE,
    )


def _remedies(
    counts: tuple[Trend, ...], calls: RunCalls | None, makes: Location | None, keeps: KeptResult | None
) -> tuple[Remedy, ...]:
    """Return what to change, the likeliest first; a line is named only where it is known to be the cause."""
    kinds = {trend.what for trend in counts}
    types = {trend.name.rpartition(".")[2] for trend in counts if trend.what is Grows.OBJECTS}
    looped = [call for call in calls.of(RunCall.PREDICT) if call.looped] if calls else []
    # Traced graphs are Python's memory, too.
    blocks = Grows.BLOCKS in kinds and Grows.FUNCTIONS not in kinds
    numbers = "Keep numbers or arrays of fixed size, not the tensors of each step"
    rows = (
        (Grows.GRAPH in kinds, "Make all operations once, before the loop", "graph", makes),
        (Grows.FUNCTIONS in kinds, "Trace each tf.function once", "once", None),
        (types & MODELS, "Forget each model before the next one is built", "session", None),
        (keeps or types & TENSORS or blocks, numbers, "numbers", keeps.at if keeps else None),
        (Grows.FILES in kinds, "Close the files that are opened in the loop", "close", None),
    )
    found = [Remedy(action, CODE[code], at) for given, action, code, at in rows if given]
    if looped:
        predicts = max(looped, key=lambda call: call.count)
        found.append(Remedy(f"Call the model itself in the loop, not {predicts.name}", CODE["call"], predicts.at))
    only_blocks = counts[:1] == tuple(c for c in counts if c.what is Grows.BLOCKS)
    if not found or (only_blocks and not keeps):
        found.append(Remedy("Find the line that holds the memory", CODE["find"]))
    return tuple(found)
