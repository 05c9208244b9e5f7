"""From a recording to a diagnosis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from tfdoctor import __version__
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose import order as ordering
from tfdoctor.diagnose.accounts import accounts
from tfdoctor.diagnose.energy import energy_account, with_energy
from tfdoctor.diagnose.rating import RunPricing
from tfdoctor.diagnose.summary import devices, machine, run
from tfdoctor.diagnose.summary import hosts as hosts_summary
from tfdoctor.diagnose.summary.account import run_account
from tfdoctor.diagnose.summary.hosts import Examined
from tfdoctor.diagnose.summary.largest import large_places
from tfdoctor.diagnose.summary.profile import profile, step_rows
from tfdoctor.diagnose.summary.timeline import timeline
from tfdoctor.diagnosis import Diagnosis, Trust
from tfdoctor.diagnosis.gates import Settings
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.savings import Together
from tfdoctor.edits import edited, line_hashes, repository_paths
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.savings.given import EnergyPrices, Price
from tfdoctor.facts.scale.hosts import HostSteps
from tfdoctor.recording import MANIFEST, Recording
from tfdoctor.scrub import PACKAGES
from tfdoctor.stored.report import finished
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.terms.units import usd
from tfdoctor.terms.verdict import Bound, Concern, Finding, Healthy, Measure, Place, PlaceKind
from tfdoctor.trace import xplane
from tfdoctor.trace.model import Trace
from tfdoctor.trace.xprof import Asked

Examine = Callable[[Recording], tuple[Chart, Diagnosis]]


def diagnose(  # noqa: PLR0913 - what to examine, by what, and what else it takes
    recording: Recording,
    rules: Iterable[Rule],
    title: str,
    *,
    ask_xprof: bool = True,
    settings: Settings | None = None,
    price: Price | None = None,
    energy_prices: EnergyPrices | None = None,
    question: Asked | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    for_epochs: int | None = None,
) -> Diagnosis:
    """Apply every rule to a recording; of several hosts, to each alone before they are compared.

    ``settings`` tells the report how these rules were chosen; ``price`` is that of all machines of the job,
    ``energy_prices`` those of a kWh.
    ``question`` is xprof's, asked already about the recording of one host; ``meanwhile`` is called before its
    answer is waited for. ``for_epochs`` is the number of epochs to extrapolate the run to; without one that of
    ``fit``'s own plan.

    Raises:
        InputError: the trace is damaged and nothing else of the run was recorded, or the traces of all hosts are.
    """
    applied, given = tuple(rules), [one for one in (price, energy_prices) if one is not None]

    def examine(of: Recording) -> tuple[Chart, Diagnosis]:
        chart = chart_of(of, *given)
        return chart, diagnosed(chart, applied, title, for_epochs)

    members = recording.hosts()
    if len(members) > 1:
        diagnosis = _several(recording, members, examine, ask_xprof=ask_xprof)
    else:
        with question or _asked(recording, wanted=ask_xprof) as asked:
            try:
                chart, diagnosis = examine(recording)
            except InputError as fault:  # then by the account of its run alone, if there is one
                chart, diagnosis = examine(recording.without_traces(fault))
            meanwhile()
            diagnosis = replace(diagnosis, xprof=run.second_opinion(chart, asked.opinion() if asked else None))
    return finished(replace(diagnosis, settings=settings or Settings()))


def _asked(recording: Recording, *, wanted: bool) -> AbstractContextManager[Asked | None]:
    return Asked(recording.traces[0]) if wanted and recording.traces else nullcontext()


def chart_of(recording: Recording, *given: object) -> Chart:
    """Return the chart of a recording's trace, with facts that the user gave.

    Raises:
        InputError: the trace is damaged.
    """
    path = recording.traces[0] if recording.traces else None
    return Chart([xplane.read(path) if path else Trace(()), recording, *given])


def _several(
    recording: Recording,
    members: Sequence[tuple[str, Recording | InputError]],
    examine: Examine,
    *,
    ask_xprof: bool,
) -> Diagnosis:
    """Compare the hosts and show one in full; only one trace is in memory at a time."""
    examined = [_examined(name, host, examine) for name, host in members]
    if not any(host.diagnosis for host in examined):
        raise InputError(examined[0].missing)
    compared = hosts_summary.hosts(examined)
    shown = next(host.diagnosis for host in examined if host.diagnosis and host.name == compared.shown)
    opened = next(of for name, of in members if name == compared.shown and isinstance(of, Recording))
    with _asked(opened, wanted=ask_xprof) as asked:
        opinion = run.second_opinion(chart_of(opened), asked.opinion()) if asked else None
    unread = [f"{host.name}: {host.missing}" for host in examined if host.diagnosis is None]
    notes = () if recording.workers else recording.notes
    return replace(
        shown,
        hosts=compared,
        together=hosts_summary.within_the_job(shown.together, compared),
        xprof=opinion,
        unrecorded=tuple(dict.fromkeys((*notes, *shown.unrecorded, *unread))),
    )


def _examined(name: str, of: Recording | InputError, examine: Examine) -> Examined:
    try:
        if isinstance(of, InputError):
            raise of
        chart, diagnosis = examine(of)
    except InputError as fault:
        return Examined(name, None, None, str(fault))
    missing = chart.why_missing(HostSteps)
    return Examined(name, diagnosis, None if missing else chart.get(HostSteps), missing)


def diagnosed(chart: Chart, rules: Iterable[Rule], title: str, for_epochs: int | None = None) -> Diagnosis:
    """Return the diagnosis of a host: what was measured, then step by step what follows from it.

    ``for_epochs`` is the number of epochs to extrapolate the run to.
    """
    recording, found = chart.fact(Recording), measured(chart, title, for_epochs)
    of_run = RunPricing.of(chart, for_epochs)
    results = engine.examine(chart, rules, of_run)
    order, together = ordering.order(chart, results), savings.together(chart, results)
    found = replace(
        found, order=order, together=together, run_together=of_run.together(results, together) if of_run else None
    )
    results = tuple(_priced(results, together, chart.get(Price)))
    results = placed(recording, with_energy(chart, results))
    step = step_rows(chart)
    results, patch = edited(recording, ordering.in_order(results, order), order)
    return replace(
        found,
        energy=energy_account(chart, found.steps.shown_ms),
        results=results,
        patch=patch,
        repository=repository_paths(recording, results),
        lines=line_hashes(recording, results),
        profile=profile(chart, step),
        large=large_places(chart, step, results),
        timeline=timeline(chart, results),
        accounts=accounts(chart, results),
        trust=run.trust(chart, results),  # last, as it names the facts that failed
    )


def measured(chart: Chart, title: str, for_epochs: int | None = None) -> Diagnosis:
    """Return what ran, and what was measured of it; no rule was applied yet."""
    operations, pipeline = run.operations(chart), run.pipeline(chart)
    return Diagnosis(
        version=__version__,
        subject=run.subject(chart, title),
        steps=run.steps(chart),
        trust=Trust(level=TrustLevel.LOW),
        results=(),
        run=run_account(chart, for_epochs),
        pipeline=pipeline,
        pipeline_missing="" if pipeline else chart.why_missing(InputPipeline),
        operations=operations,
        operations_missing="" if operations else chart.why_missing(Operations),
        rates=run.rates(chart),
        conditions=machine.conditions(chart),
        model=run.model(chart),
        machine=tuple(row for row in machine.machine(chart) if row[1]),
        samples=machine.samples(chart),
        device_time=devices.gpu_time(chart) or devices.tpu_time(chart),
        device_time_missing=devices.missing(chart),
        unrecorded=machine.unrecorded(chart),
    )


def _priced(results: Iterable[Result], together: Together | None, price: Price | None) -> Iterator[Result]:
    """Add to the results about money how much of it all changes combined would save.

    A rule cannot do so itself: savings are computed after all rules have run.
    """
    for result in results:
        said = result.outcome
        if together and price and isinstance(said, Finding | Healthy) and said.concern is Concern.MONEY:
            most = ", at most" if together.bound is Bound.AT_MOST else ""
            saved = usd(1000 * price.of_ms(together.ms_per_step))
            measure = Measure(f"saving per 1,000 steps with all changes{most}", saved)
            yield replace(result, outcome=replace(said, evidence=(*said.evidence, measure)))
        else:
            yield result


def placed(recording: Recording, results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results, with the places of findings whose own line is unknown or in no file of the repository.

    They are the training call, the script and the trace, as far as the recording names them.
    """
    at, manifest, found = Places.of(recording), recording.manifest, list[Place]()
    if manifest is not None:
        traced = manifest.window.at if manifest.window else None
        if loop := at(traced or manifest.steps.at):
            found.append(Place(loop.path, loop.line, PlaceKind.TRAINING_CALL))
        if manifest.script and not PACKAGES.search(manifest.script):  # no kernel of a notebook
            found.append(Place(at.shown(manifest.script), 1, PlaceKind.SCRIPT))
    described = [recording.root / MANIFEST] if recording.root else []
    for file in (*recording.traces, *described)[:1]:
        # As code review names files: from the current folder, or by the name alone.
        whole, here = file.resolve(), Path.cwd()
        path = whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.name
        found.append(Place(path, 1, PlaceKind.TRACE))
    fallbacks = tuple(found)
    return tuple(
        replace(result, fallbacks=fallbacks) if isinstance(result.outcome, Finding) else result
        for result in results
    )
