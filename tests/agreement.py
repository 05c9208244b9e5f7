"""What must hold of every recording: facts that measure one thing agree, and every large part has an account."""

from tests.kit import *
from tests.report.diagnoses import told
from tfdoctor.diagnose.accounts import accounts
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import AccountState
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import Collectives
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleCause, IdleGaps
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.given import SHARE
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_time import PartEvents, PythonOverhead
from tfdoctor.facts.step_time.python_work import CompileTime, Retracing
from tfdoctor.facts.steps.steps import STEP, SteadySteps, Steps
from tfdoctor.report import sentences, words
from tfdoctor.report.page import prospects
from tfdoctor.report.sentences import steps_matter
from tfdoctor.terms.humanize import about_ms, milliseconds, share
from tfdoctor.terms.verdict import Stage

CLOSE = 0.05
"""Of the larger one."""

SMALL = 0.005
"""Of the step: less is not worth saying."""


@dataclass(frozen=True)
class Pair:
    """A quantity in ms per step as two facts have it; ``at_most``: the second is a part of the first."""

    what: str
    one: tuple[type, Callable[[Any], float]]
    other: tuple[type, Callable[[Any], float]]
    at_most: bool = False


def idle(breakdown: Breakdown) -> float:
    """Return the time in which no stream of a GPU works."""
    working = (Stage.DEVICE, Stage.COLLECTIVE, Stage.TRANSFER)
    return breakdown.step_ms - sum(breakdown[stage] for stage in working)


def most_of_a_thread(part: Stage) -> Callable[[PartEvents], float]:
    """Return the time of Python's events; other threads run beside them."""
    return lambda events: sum(
        event.ms for event in events.by_part.get(part, ()) if event.thread.startswith("python")
    )


def part(stage: Stage) -> tuple[type, Callable[[Any], float]]:
    return Breakdown, lambda breakdown: breakdown[stage]


STEP_MS = (Breakdown, lambda b: b.step_ms)
BETWEEN, HOST, DEVICE = map(part, (Stage.BETWEEN, Stage.HOST, Stage.DEVICE))
IDLE = (Breakdown, idle)

PAIRS = (
    Pair("step", STEP_MS, (Steps, lambda s: s.median_ms)),
    Pair("step", STEP_MS, (StepModel, lambda m: sum(m.traced.values()))),
    Pair("step", (StepModel, lambda m: m.step_ms), (StepModel, lambda m: m.predict([]))),
    Pair("step", STEP_MS, (SteadySteps, lambda s: s.round_ms)),
    Pair("step", STEP_MS, (GpuUtilization, lambda g: g.round_ms)),
    Pair("between", BETWEEN, (PythonOverhead, lambda p: p.between_ms + p.body_between_ms)),
    Pair("functions between steps", BETWEEN, (Retracing, lambda r: r.between_ms + r.calling_ms), at_most=True),
    Pair("tracing in the call", HOST, (Retracing, lambda r: r.host_ms), at_most=True),
    Pair("compiling in the call", HOST, (CompileTime, lambda c: c.host_ms), at_most=True),
    Pair("edges of the call", HOST, (PythonOverhead, lambda p: p.edges_ms), at_most=True),
    Pair("Python in host time", HOST, (PartEvents, most_of_a_thread(Stage.HOST)), at_most=True),
    Pair("Python between steps", BETWEEN, (PartEvents, most_of_a_thread(Stage.BETWEEN)), at_most=True),
    Pair("device", DEVICE, (Operations, lambda o: sum(row.ms for row in o.rows))),
    Pair("device", DEVICE, (GpuUtilization, lambda g: g.busiest.kernel_ms)),
    Pair("idle", IDLE, (GpuUtilization, lambda g: g.round_ms - g.busiest.busy_ms)),
    Pair("idle", IDLE, (IdleGaps, lambda g: g.idle_ms)),
    Pair("idle", (IdleGaps, lambda g: g.idle_ms), (IdleGaps, lambda g: sum(g.causes.values()))),
    Pair("input wait", part(Stage.INPUT), (IdleGaps, lambda g: g.causes[IdleCause.INPUT])),
    Pair("between", BETWEEN, (IdleGaps, lambda g: g.causes[IdleCause.BETWEEN])),
    Pair("collectives", part(Stage.COLLECTIVE), (Collectives, lambda c: c.exposed_ms)),
)
"""All quantities that two facts measure."""


def disagreements(chart: Chart) -> Iterator[str]:
    """Yield each pair of facts that differ by more than 5 %."""
    steady, breakdown = chart.get(SteadySteps), chart.get(Breakdown)
    if breakdown is None or (steady and steady.unit is not STEP):
        return
    for pair in PAIRS:
        (one, measured), (other, again) = pair.one, pair.other
        if chart.why_missing(one) or chart.why_missing(other):
            continue
        first, second = measured(chart.fact(one)), again(chart.fact(other))
        off = second - first if pair.at_most else abs(second - first)
        if off > CLOSE * max(first, second) and off > SMALL * breakdown.step_ms:
            names = f"{one.__name__} {first:.3f}, {other.__name__} {second:.3f}"
            yield f"{pair.what}: {names} of {breakdown.step_ms:.3f} ms"


def unaccounted(chart: Chart, results: tuple[Result, ...]) -> Iterator[str]:
    """Yield each large part of the step without exactly one account that says something."""
    breakdown, model = chart.get(Breakdown), chart.get(StepModel)
    if breakdown is None:
        return
    times = model.exposed if model else breakdown.median
    found, whole = accounts(chart, results), sum(times.values())
    large = {p for p, ms in times.items() if ms and ms >= SHARE * whole}
    if sorted(account.part for account in found) != sorted(map(str, large)):
        yield f"accounts of {[account.part for account in found]}, not of {sorted(large)}"
    for account in found:
        says = {
            AccountState.NAMED: bool(account.rules),
            AccountState.NECESSARY: bool(account.why),
            AccountState.UNEXPLAINED: account.unexplained_ms > 0,
        }
        if not says[account.state]:
            yield f"{account.part} is {account.state} without a reason"


def calls_healthy(diagnosis: Diagnosis) -> bool:
    """Return whether a report says that nothing can change, or is silent while a part is unexplained."""
    unexplained = {account.part for account in sentences.unexplained(diagnosis)}
    silent = not unexplained <= {part for part, _, _ in words.accounts(diagnosis)}
    said = " ".join(prospects(diagnosis)).lower()
    return "nothing to change" in said or (bool(unexplained) and silent)


WITHIN = 0.02
"""Of the step: what two figures of one report may differ by."""


def other_steps(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield each figure of a report that refers to another step than its verdict."""
    steps = diagnosis.steps
    if not steps.shown_ms:
        return
    whole = {"parts": sum(steps.shown_breakdown_ms.values())} | {
        f"saving of {r.rule.name}": r.saving.ms_per_step / r.saving.share
        for r in diagnosis.results
        if r.saving and r.saving.share and not diagnosis.hosts
    }
    if diagnosis.together and diagnosis.together.share:
        together = diagnosis.together
        whole["together"] = together.ms_per_step / together.share
    for what, step_ms in whole.items():
        if abs(step_ms - steps.shown_ms) > WITHIN * steps.shown_ms:
            yield f"{what} is of {step_ms:.3f} ms, not of {steps.shown_ms:.3f} ms"
    for account in diagnosis.accounts:
        if abs(account.total_ms - steps.shown_breakdown_ms[account.part]) > WITHIN * steps.shown_ms:
            yield f"account of {account.part} is of {account.total_ms:.3f} ms"
    yield from _other_words(diagnosis)


def _other_words(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what is wrong with the words of the verdict: the step, and what the changes reduce it to."""
    steps, together = diagnosis.steps, diagnosis.together
    verdict = told(diagnosis)
    if not any(milliseconds(steps.shown_ms) in words for words in verdict):
        yield f"the verdict does not name the step of {milliseconds(steps.shown_ms)}"
    if (run := sentences.whole_run(diagnosis)) and not steps_matter(run):
        return
    if together and steps.shown_ms and 0 < together.ms_per_step < steps.shown_ms:
        after = about_ms(steps.shown_ms - together.ms_per_step)
        if words.pace_ms(diagnosis):  # what remains is of a traced step
            after = f"{share(together.share)} shorter"
        if not any(after in words for words in prospects(diagnosis)):
            yield f"the verdict does not say that {after} remain: {verdict}"
