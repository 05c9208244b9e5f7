"""The stages from a recording's facts to its diagnosis, in order. Each adds fields to the diagnosis."""

from collections.abc import Callable
from dataclasses import replace

from tfdoctor import __version__
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose import order as ordering
from tfdoctor.diagnose.accounts import accounts
from tfdoctor.diagnose.energy import MeasuredEnergy
from tfdoctor.diagnose.places import placed
from tfdoctor.diagnose.pricing import priced
from tfdoctor.diagnose.run_account import run_account
from tfdoctor.diagnose.run_pricing import RunPricing
from tfdoctor.diagnose.summary import gpu, machine, run, tpu
from tfdoctor.diagnose.summary.conditions import conditions
from tfdoctor.diagnose.summary.marks import WorkMarks
from tfdoctor.diagnose.summary.profile import profile
from tfdoctor.diagnose.summary.timeline import timeline
from tfdoctor.diagnosis import Diagnosis, Trust
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.edits import edited, line_hashes, repository_paths
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.price import Price
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.terms.record import Record


class Case(Record):
    """What is examined, and by what; ``for_epochs`` is the number of epochs to extrapolate the run to."""

    chart: Chart
    rules: tuple[Rule, ...]
    title: str
    for_epochs: int | None = None

    @property
    def recording(self) -> Recording:
        """The recording that the facts are measured of."""
        return self.chart.fact(Recording)

    @property
    def run(self) -> RunPricing | None:
        """What the run's time is worth; None where the run is not known whole."""
        return RunPricing.of(self.chart, self.for_epochs)


def diagnosed(case: Case) -> Diagnosis:
    """Return the diagnosis of a case: what was measured, then stage by stage what follows from it."""
    diagnosis = measured(case)
    for stage in STAGES:
        diagnosis = stage(case, diagnosis)
    return diagnosis


def measured(case: Case) -> Diagnosis:
    """Return what ran, and what was measured of it; no rule was applied yet."""
    chart = case.chart
    operations, pipeline = run.operations(chart), run.pipeline(chart)
    return Diagnosis(
        version=__version__,
        subject=run.subject(chart, case.title),
        steps=run.steps(chart),
        trust=Trust(level=TrustLevel.LOW),
        results=(),
        run=run_account(chart, case.for_epochs),
        pipeline=pipeline,
        pipeline_missing="" if pipeline else chart.why_missing(InputPipeline),
        operations=operations,
        operations_missing="" if operations else chart.why_missing(Operations),
        rates=run.rates(chart),
        conditions=conditions(chart),
        model=run.model(chart),
        machine=machine.machine(chart),
        samples=machine.samples(chart),
        device_time=gpu.device_time(chart) or tpu.tpu_time(chart),
        device_time_missing=gpu.device_time_missing(chart),
        unrecorded=machine.unrecorded(chart),
    )


def checked(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Apply the rules; findings get their savings of the step and of the run, and a severity."""
    return replace(diagnosis, results=engine.examine(case.chart, case.rules, case.run))


def ordered(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add what all changes save together, and in which order findings are to be fixed."""
    chart, results = case.chart, diagnosis.results
    together = savings.together(chart, results)
    return replace(
        diagnosis,
        order=ordering.order(chart, results),
        together=together,
        run_together=case.run.together(results, together) if case.run else None,
    )


def priced_in_money(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add what the changes are worth, where the user gave a price."""
    results = priced(diagnosis.results, diagnosis.together, case.chart.get(Price))
    return replace(diagnosis, results=results)


def with_energy(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add the energy of steps and run, and what findings save of it, where a counter measured it."""
    measured_energy = MeasuredEnergy.of(case.chart, diagnosis.steps.shown_ms)
    if measured_energy is None:
        return diagnosis
    return replace(
        diagnosis, energy=measured_energy.account(), results=measured_energy.with_savings(diagnosis.results)
    )


def located(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add where findings without a line are shown."""
    return replace(diagnosis, results=placed(case.recording, diagnosis.results))


def with_edits(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add the changes as edits of the user's own lines, and as a patch."""
    results = ordering.in_order(diagnosis.results, diagnosis.order)
    results, patch = edited(case.recording, results, diagnosis.order)
    paths = repository_paths(case.recording, results)
    lines = line_hashes(case.recording, results)
    return replace(diagnosis, results=results, patch=patch, repository=paths, lines=lines)


def profiled(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add what takes most of the step."""
    return replace(diagnosis, profile=profile(case.chart))


def drawn(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add the timeline of a step, in which the work is marked that findings are about."""
    return replace(diagnosis, timeline=timeline(case.chart, WorkMarks.of(diagnosis.results)))


def accounted(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add what explains each large part of the step."""
    return replace(diagnosis, accounts=accounts(case.chart, diagnosis.results))


def trusted(case: Case, diagnosis: Diagnosis) -> Diagnosis:
    """Add how far the figures can be trusted; last, as it names the facts that failed."""
    return replace(diagnosis, trust=run.trust(case.chart, diagnosis.results))


# In the order in which they are applied; each sees what those before it have added.
STAGES: tuple[Callable[[Case, Diagnosis], Diagnosis], ...] = (
    checked,
    ordered,
    priced_in_money,
    with_energy,
    located,
    with_edits,
    profiled,
    drawn,
    accounted,
    trusted,
)
