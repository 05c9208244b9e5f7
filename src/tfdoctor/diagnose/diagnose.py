"""From a recording to a diagnosis."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tfdoctor import __version__
from tfdoctor.diagnose import engine
from tfdoctor.diagnose import order as ordering
from tfdoctor.diagnose.accounts import accounts
from tfdoctor.diagnose.places import placed
from tfdoctor.diagnose.pricing import priced
from tfdoctor.diagnose.run_account import run_account
from tfdoctor.diagnose.run_pricing import RunPricing
from tfdoctor.diagnose.second_opinion import asked, chart_of, compared, second_opinion
from tfdoctor.diagnose.summary import gpu, machine, run, tpu
from tfdoctor.diagnose.summary import hosts as hosts_summary
from tfdoctor.diagnose.summary.conditions import conditions
from tfdoctor.diagnose.summary.hosts import Examined
from tfdoctor.diagnose.summary.timeline import timeline
from tfdoctor.diagnosis import Diagnosis, Settings
from tfdoctor.edits import edited, repository_paths
from tfdoctor.errors import InputError
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.price import Price
from tfdoctor.facts.scale.host_steps import HostSteps
from tfdoctor.recording import Recording, hosts
from tfdoctor.rule import Rule
from tfdoctor.trace.xprof import Asked


def diagnose(  # noqa: PLR0913 - what to examine, by what, and what else it takes
    recording: Recording,
    rules: Iterable[Rule],
    title: str,
    *,
    ask_xprof: bool = True,
    settings: Settings | None = None,
    price: Price | None = None,
    question: Asked | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    for_epochs: int | None = None,
) -> Diagnosis:
    """Apply every rule to a recording; of several hosts, to each alone before they are compared.

    ``settings`` tells the report how these rules were chosen; ``price`` is that of all machines of the job.
    ``question`` is xprof's, asked already about the recording of one host; ``meanwhile`` is called before its
    answer is waited for. ``for_epochs`` is the number of epochs to extrapolate the run to; without one that of
    ``fit``'s own plan.

    Raises:
        InputError: the trace is damaged and nothing else of the run was recorded, or the traces of all hosts are.
    """
    rules, members = tuple(rules), hosts.of(recording)
    if len(members) > 1:
        host = Examination(rules, title, price, for_epochs)
        diagnosis = _several(recording, members, host, ask_xprof=ask_xprof)
    else:
        with question or asked(recording, wanted=ask_xprof) as opinion:
            chart, diagnosis = _of_one(recording, Examination(rules, title, price, for_epochs))
            meanwhile()
            diagnosis = replace(diagnosis, xprof=compared(chart, opinion))
    return replace(diagnosis, settings=settings or Settings())


def _of_one(recording: Recording, by: "Examination") -> tuple[Chart, Diagnosis]:
    """Examine the only host; with a damaged trace by the account of its run alone, if there is one."""
    try:
        chart = chart_of(recording, by.price)
        return chart, _diagnosis(chart, by.rules, by.title, by.for_epochs)
    except InputError as fault:
        return _of_one(recording.without_traces(fault), by)


@dataclass(frozen=True, slots=True)
class Examination:
    """What the hosts of a job are examined by."""

    rules: tuple[Rule, ...]
    title: str
    price: Price | None
    for_epochs: int | None

    def of(self, member: hosts.HostRecording) -> Examined:
        """Examine a host."""
        try:
            chart = chart_of(member.opened(), self.price)
        except InputError as fault:
            return Examined(member.name, None, None, str(fault))
        missing = chart.why_missing(HostSteps)
        steps = None if missing else chart.get(HostSteps)
        diagnosis = _diagnosis(chart, self.rules, self.title, self.for_epochs)
        return Examined(member.name, diagnosis, steps, missing)


def _several(
    recording: Recording,
    members: Sequence[hosts.HostRecording],
    by: Examination,
    *,
    ask_xprof: bool,
) -> Diagnosis:
    """Compare the hosts and show one in full; only one trace is in memory at a time."""
    examined = [by.of(member) for member in members]
    if not any(host.diagnosis for host in examined):
        raise InputError(examined[0].missing)
    compared = hosts_summary.hosts(examined)
    diagnoses = {host.name: host.diagnosis for host in examined if host.diagnosis}
    shown = diagnoses[compared.shown]
    chosen = next(member for member in members if member.name == compared.shown)
    unread = [f"{host.name}: {host.missing}" for host in examined if host.diagnosis is None]
    notes = () if recording.workers else recording.notes
    return replace(
        shown,
        hosts=compared,
        together=hosts_summary.within_the_job(shown.together, compared),
        xprof=second_opinion(chosen.opened()) if ask_xprof else None,
        unrecorded=tuple(dict.fromkeys((*notes, *shown.unrecorded, *unread))),
    )


def _diagnosis(
    chart: Chart, rules: tuple[Rule, ...], title: str, for_epochs: int | None
) -> Diagnosis:
    results, pricing = engine.examine(chart, rules), RunPricing.of(chart, for_epochs)
    order = ordering.order(chart, results)
    together = engine.together(chart, results)
    results = pricing.priced(results) if pricing else results
    results = priced(results, together, chart.get(Price))
    results = placed(chart.fact(Recording), results)
    results, patch = edited(chart.fact(Recording), ordering.in_order(results, order), order)
    operations, pipeline = run.operations(chart), run.pipeline(chart)
    return Diagnosis(
        version=__version__,
        subject=run.subject(chart, title),
        steps=run.steps(chart),
        results=results,
        order=order,
        patch=patch,
        repository=repository_paths(chart.fact(Recording), results),
        together=together,
        run=run_account(chart, for_epochs),
        run_together=pricing.together(results, together) if pricing else None,
        timeline=timeline(chart),
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
        accounts=accounts(chart, results),
        trust=run.trust(chart),  # last: it names the facts that failed
    )
