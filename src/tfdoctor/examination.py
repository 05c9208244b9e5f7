"""From a recording to all that its report shows: the commands and the Python interface show the same."""

from collections.abc import Callable
from dataclasses import dataclass

from tfdoctor.compare.baseline import Baseline, compared
from tfdoctor.compare.budgets import checked
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.facts.savings.price import EnergyPrices, Price
from tfdoctor.recording import Recording
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.rulebook.config import Budget
from tfdoctor.trace.xprof import Asked
from tfdoctor.trial import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user wants to know of a recording besides what slows it.

    ``usd_per_hour`` is the price of all machines of the job, ``energy_prices`` those of a kWh, ``for_epochs`` the
    length of the run that savings are told for, ``baseline`` the known findings with the name of their file.
    """

    budget: Budget
    baseline: tuple[Baseline, str] | None = None
    usd_per_hour: float | None = None
    energy_prices: EnergyPrices | None = None
    for_epochs: int | None = None


def examined(
    recording: Recording,
    title: str,
    rules: Rulebook,
    question: Question,
    *,
    asked: Asked | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Diagnosis:
    """Diagnose a recording, then check budgets and baseline, and add what the last trial measured.

    ``asked`` is xprof, which works on the recording already; ``meanwhile`` is called before its answer comes.

    Raises:
        InputError: the trace or the last trial is damaged.
    """
    price = question.usd_per_hour
    diagnosis = diagnose(
        recording,
        rules.rules,
        title,
        settings=rules.settings,
        price=None if price is None else Price(price),
        energy_prices=question.energy_prices,
        for_epochs=question.for_epochs,
        question=asked,
        meanwhile=meanwhile,
    )
    diagnosis = checked(diagnosis, question.budget)
    if question.baseline is not None:
        diagnosis = compared(diagnosis, *question.baseline)
    return stored.with_last(diagnosis, recording)
