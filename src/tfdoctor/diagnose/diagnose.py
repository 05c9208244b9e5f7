"""From a recording to a diagnosis."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tfdoctor.diagnose.second_opinion import asked, compared
from tfdoctor.diagnose.stages import Case, diagnosed
from tfdoctor.diagnose.summary import hosts as hosts_summary
from tfdoctor.diagnose.summary.hosts import Examined
from tfdoctor.diagnosis import Diagnosis, SecondOpinion, Settings
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.price import EnergyPrices, Price
from tfdoctor.facts.scale.hosts import HostSteps
from tfdoctor.recording import Recording, hosts
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record
from tfdoctor.trace import Trace, xplane
from tfdoctor.trace.xprof import Asked


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
    members = hosts.of(recording)
    given = tuple(one for one in (price, energy_prices) if one is not None)
    by = Examination(tuple(rules), title, given, for_epochs)
    if len(members) > 1:
        diagnosis = _several(recording, members, by, ask_xprof=ask_xprof)
    else:
        with question or asked(recording, wanted=ask_xprof) as opinion:
            chart, diagnosis = _of_one(recording, by)
            meanwhile()
            diagnosis = replace(diagnosis, xprof=compared(chart, opinion))
    return replace(diagnosis, settings=settings or Settings())


def _of_one(recording: Recording, by: "Examination") -> tuple[Chart, Diagnosis]:
    """Examine the only host; with a damaged trace by the account of its run alone, if there is one."""
    try:
        chart = chart_of(recording, *by.given)
        return chart, by.diagnosed(chart)
    except InputError as fault:
        return _of_one(recording.without_traces(fault), by)


def chart_of(recording: Recording, *given: object) -> Chart:
    """Return the chart of a recording's trace, with facts that the user gave.

    Raises:
        InputError: the trace is damaged.
    """
    path = recording.traces[0] if recording.traces else None
    return Chart([xplane.read(path) if path else Trace(()), recording, *given])


class Examination(Record):
    """What the hosts of a job are examined by."""

    rules: tuple[Rule, ...]
    title: str
    given: tuple[object, ...]  # facts that the user gave
    for_epochs: int | None

    def of(self, member: hosts.HostRecording) -> Examined:
        """Examine a host."""
        try:
            chart = chart_of(member.opened(), *self.given)
        except InputError as fault:
            return Examined(member.name, None, None, str(fault))
        missing = chart.why_missing(HostSteps)
        steps = None if missing else chart.get(HostSteps)
        return Examined(member.name, self.diagnosed(chart), steps, missing)

    def diagnosed(self, chart: Chart) -> Diagnosis:
        """Return the diagnosis of a host by its facts."""
        return diagnosed(Case(chart, self.rules, self.title, self.for_epochs))


def _several(
    recording: Recording, members: Sequence[hosts.HostRecording], by: Examination, *, ask_xprof: bool
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
        xprof=_second_opinion(chosen.opened()) if ask_xprof else None,
        unrecorded=tuple(dict.fromkeys((*notes, *shown.unrecorded, *unread))),
    )


def _second_opinion(recording: Recording) -> SecondOpinion | None:
    with asked(recording) as question:
        return compared(chart_of(recording), question)
