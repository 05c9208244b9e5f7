"""What the parts of a report say beside its findings: budgets, profile, energy, hosts, and the run itself."""

# ruff: noqa: F403, F405 - one import of how numbers become text
import shlex
from collections.abc import Iterable, Iterator

from tfdoctor.diagnosis import BudgetCheck, BudgetState, Diagnosis, LargePlace, LimitSet, ProfileRow
from tfdoctor.diagnosis.savings import EnergyAccount, EnergyAmount, EnergyRow, EnergySaving
from tfdoctor.report.tables import Grid, texts
from tfdoctor.report.words import PART_LABELS, at_most, joined
from tfdoctor.terms import text
from tfdoctor.terms.humanize import *
from tfdoctor.terms.kinds import DeviceKind, EnergySource
from tfdoctor.terms.units import Quantity, grams_co2, watts
from tfdoctor.terms.verdict import Stage

# Budgets and the baseline
# In place of an interval: of what is measured once, and of a figure of which a part is unknown.
ONE_FIGURE, BOUNDS = "one figure", "between these for certain"
NAMED = 5  # Findings that are gone and named; the JSON report has all


def budget_state(check: BudgetCheck) -> str:
    """Return "met", "exceeded", "not reached", "undecided" or "unknown"."""
    if check.state.undecided:
        return "undecided"
    return "not reached" if check.at_least and check.state is BudgetState.EXCEEDED else check.state.value


def budget_cells(check: BudgetCheck) -> tuple[str, str, str, str]:
    """Return the limit, the figure, its interval or what stands in its place, and what the state means."""
    limit = f"at {'least' if check.at_least else 'most'} {quantity(Quantity(check.limit, check.unit))}"
    value, low, high = (
        None if one is None else Quantity(one, check.unit) for one in (check.value, check.low, check.high)
    )
    span = quantity_span(low, high) if low and high else ""
    figures = (quantity(value), span or ONE_FIGURE) if value else (span, BOUNDS) if span else (UNKNOWN, "")
    why, remark = f", because {text.prose(check.why)}", ""
    if check.state.undecided:
        more = why if check.why else "; record more steps to decide it"
        remark = f"the interval contains the limit (exit code 4){more}"
    elif check.state is BudgetState.UNKNOWN:
        remark = f"it fails{why}"
    return (limit, *figures, remark)


def budget_told(check: BudgetCheck) -> str:
    """Return what was measured, the limit, and what the state means, in one line."""
    limit, value, interval, remark = budget_cells(check)
    certain = interval in {ONE_FIGURE, BOUNDS}
    measured = f"{value} ({interval if certain else f'95 %: {interval}'}), " if interval else ""
    return joined(f"{measured}{limit}", remark, by="; ")


def budget_verdict(checks: Iterable[BudgetCheck]) -> str:
    """Return which budgets fail, and which are undecided; "" where none does."""
    failed = [f"{check.key} is {budget_state(check)}" for check in checks if check.state.failed]
    undecided = [check.key for check in checks if check.state.undecided]
    fails = counted(len(failed), "budget fails", "budgets fail").capitalize()
    are = counted(len(undecided), "budget is", "budgets are").capitalize()
    return joined(
        f"{fails}: {', '.join(failed)}." if failed else "",
        f"{are} undecided: {', '.join(undecided)}." if undecided else "",
        by=" ",
    )


def baseline(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return how many findings the baseline knows, and which of its findings are gone; () without a baseline."""
    if (use := diagnosis.baseline) is None:
        return ()
    of_hosts = [one.known for one in diagnosis.hosts.findings if not one.shown] if diagnosis.hosts else []
    marks = [*(one.known for one in diagnosis.results), *of_hosts]
    known, new = (counted(marks.count(mark), "finding") for mark in (True, False))
    first = f"Baseline {text.name(use.file)}: {known} known, {new} new."
    if not use.gone:
        return (first,)
    names = [joined(text.name(one.rule), text.name(one.file), by=" in ") for one in use.gone[:NAMED]]
    names += [f"{len(use.gone) - NAMED} more"] if len(use.gone) > NAMED else []
    gone, verb = counted(len(use.gone), "finding").capitalize(), "is" if len(use.gone) == 1 else "are"
    return (first, f"{gone} of the baseline {verb} gone ({', '.join(names)}): run --write-baseline again.")


def limit_set(limit: LimitSet) -> str:
    """Return a limit that was set: its value, its default and where it was set."""
    rule, name, by = map(text.name, (limit.rule, limit.name, limit.by))
    return f"{rule}.{name} = {limit.value:g} (default {limit.default:g}, set in {by})"


# The profile of the step: what takes most of it, and how far that is from what the hardware can do.
FASTEST = 0.995  # Share of this run's highest rate from which an operation is the fastest


def has_profile(diagnosis: Diagnosis) -> bool:
    """Return whether anything of the step is known."""
    return bool(diagnosis.profile.rows and diagnosis.steps.shown_ms)


def profile_caption(diagnosis: Diagnosis) -> str:
    """Return what the profile shows."""
    inputs = " Stages of the input work beside the rest of the step, which waits for the slowest alone."
    inputs = inputs if any(row.part == Stage.INPUT for row in diagnosis.profile.rows) else ""
    return (
        f"What takes most of a step of {milliseconds(diagnosis.steps.shown_ms)}: lines of Python, operations by "
        "type and line, stages of the input. The last column compares the least time that the bytes and FLOPs need "
        f"at the hardware's rates with the measured one.{inputs}"
    )


def profile_rest(diagnosis: Diagnosis) -> str:
    """Return how many shorter rows the profile leaves out; "" of none."""
    profile = diagnosis.profile
    took = f", {milliseconds(profile.omitted_ms)} together" if profile.omitted_ms else ""
    rows = counted(profile.omitted, "shorter row").capitalize()
    return f"{rows} left out{took}." if profile.omitted else ""


def profile_cells(row: ProfileRow) -> tuple[str, str, str, str]:
    """Return what a row of the profile is, its line or layer, its time, and its share of the step."""
    part = "beside it" if row.beside else share(row.share)  # the step does not wait for it
    inner = f" at {location(row.inner)}" if row.inner else ""
    return text.name(row.what, 80) + inner, location(row.at) or text.name(row.layer, 60), milliseconds(row.ms), part


def reached(row: ProfileRow, *, brief: bool = False) -> str:
    """Return how near a row is to the hardware's rates, else to this run's highest; in brief, "" of neither."""
    if row.attained is not None:
        return f"{percent(row.attained)}{' of the hardware' if brief else ''}"
    if row.of_fastest is None:
        return "" if brief else "unknown"
    of = "the" if brief else "this run's"
    return f"{of} fastest" if row.of_fastest >= FASTEST else f"{percent(row.of_fastest)} of {of} fastest"


def reached_told(row: ProfileRow) -> str:
    """Return how near a row is, and why no more of that is known."""
    why = f"({text.prose(row.unknown)})" if row.unknown else ""
    return joined(reached(row), why, by=" ")


# Places that take much, without a finding that explains them.
LARGE = "Largest places without a known change"
LARGE_CAPTION = (
    "No finding with a known saving explains this time, which need not be necessary. A change saves at most what a "
    "line takes."
)


def large_form(place: LargePlace) -> str:
    """Return what mostly takes less time than a large place does; "" is not known."""
    return f"Where it applies: {place.form}" if place.form else ""


def large_cells(place: LargePlace) -> tuple[str, str, str]:
    """Return the line of a large place, its time, and what takes that."""
    time = f"{duration(place.ms)} of the run" if place.of_run else f"{milliseconds(place.ms)} of a step"
    recurring = f"{share(place.recurring)} of what recurs" if place.recurring is not None else ""
    rate = f"{percent(place.attained)} of what the hardware allows" if place.attained is not None else ""
    rate = rate or (f"{percent(place.of_fastest)} of this run's fastest" if place.of_fastest is not None else "")
    takes = f"the same layers, {place.times} times in each step" if place.times else text.name(place.what, 80)
    takes += f" at {location(place.inner)}" if place.inner else ""
    what = joined(PART_LABELS.get(place.part) or str(place.phase), takes, rate)
    return location(place.at), f"{time} ({joined(share(place.share), recurring)})", what


# Energy, where a counter measured it: what it counts, and whose it is.
COUNTED = {EnergySource.GPU: ("GPU board", "NVML"), EnergySource.CPU: ("CPU package", "RAPL")}


def energy_amount(amount: EnergyAmount | None) -> str:
    """Return an energy, with money and CO2 where their prices were given: "3.4 Wh ($0.001, 1.3 g CO2)"."""
    if amount is None:
        return "unknown"
    price = "" if amount.usd is None else dollars(amount.usd)
    also = joined(price, "" if amount.gco2 is None else quantity(grams_co2(amount.gco2)))
    return joined(energy(amount.joules), f"({also})" if also else "", by=" ")


def _counter(row: EnergyRow) -> str:
    noun, counter = COUNTED[row.source]
    return f"{counted(row.devices, noun)} ({counter})"


def energy_grid(account: EnergyAccount) -> Grid:
    """Return the energy as a table with a row for each kind of counter."""
    epoch = [f"per epoch of {with_noun(account.epoch_steps, 'step')}"] if account.epoch_steps else []
    numbers = dict.fromkeys(("power", "per step", "without kernels", *epoch, "whole run"), "number")
    rows = []
    for row in account.rows:
        step, *later = map(energy_amount, (row.per_step, *[row.per_epoch] * bool(epoch), row.run))
        idle = f"{'at least ' if row.idle_per_step else ''}{energy_amount(row.idle_per_step)}"
        rows.append((_counter(row), quantity(watts(row.power_w)), step, idle, *later))
    return texts({"counter": "text", **numbers}, rows)


def energy_brief(diagnosis: Diagnosis) -> str:
    """Return what the counters measured of a step and of the run, in one line; "" without a counter."""
    told: list[str] = []
    for row in diagnosis.energy.rows if diagnosis.energy else ():
        step = f"{energy_amount(row.per_step)} per step, " if row.per_step else ""
        aside = row.source is EnergySource.GPU and diagnosis.subject.device not in {None, DeviceKind.GPU}
        unused = ", which the steps did not run on" if aside else ""
        told.append(f"{_counter(row)}{unused}: {step}{energy_amount(row.run)} in the run")
    return "; ".join(told)


def energy_notes(account: EnergyAccount, device: DeviceKind | None) -> Iterator[str]:
    """Yield what the figures of energy mean, for steps that ran on a device."""
    yield (
        f"The mean power of {account.measured_s:.0f} s of training steps, by counters that are read once a second; "
        "a step's energy is that power for its time."
    )
    for row in account.rows:
        if row.source is not EnergySource.GPU:
            yield "RAPL counts all programs on the processor, and neither its memory nor the rest of the machine."
            continue
        if device is None:
            yield "Whether the steps ran on these boards was not recorded."
        elif device is not DeviceKind.GPU:
            yield "The steps did not run on these boards: it is what they took meanwhile."
        if row.without:
            yield f"{counted(row.without, 'GPU board')} of the run shows no counter and is not in these figures."
        if row.idle_w is None or row.busy is None:
            yield "The boards were not idle for long enough to tell their idle power."
        else:
            yield (
                f"Kernels ran for {percent(row.busy)} of that time. The time without them is counted at the "
                f"{quantity(watts(row.idle_w))} of the boards while nothing runs: at least, as they take more then."
            )


def energy_saved(saving: EnergySaving | None, *, brief: bool = False) -> str:
    """Return what a change saves of energy, as a sentence; "" where that was not measured.

    In brief it is the amount alone, of the run where it is known.
    """
    if saving is None:
        return ""
    most, step = at_most(saving.bound), f"{energy_amount(saving.per_step)} of each step"
    run = f"{energy_amount(saving.run)} of the run" if saving.run else ""
    if brief:
        return f"{most}{run or step}"
    power, (noun, _) = quantity(watts(saving.power_w)), COUNTED[saving.source]
    return f"This saves {most}{joined(step, run)}, at {power} of the {noun}s."


# The run: what was examined, and on what.
FIRST = ("tensorflow", "keras")  # The versions that stand before the others, which are in the order of their names

# How the time of accelerators is counted, and what it covers where the trace has no steps.
_COUNTING = {
    DeviceKind.GPU: ("Union over the streams of each GPU; copies do not count as kernels", "in the whole trace"),
    DeviceKind.TPU: ("Busiest core; waiting for asynchronous copies does not count as compute", "per program run"),
}


def device_time(diagnosis: Diagnosis) -> tuple[str, str] | None:
    """Return the title of what the accelerators do, and how it is counted; None for a run that used none."""
    kind = diagnosis.subject.device
    if kind not in _COUNTING:
        return None
    counting, without_steps = _COUNTING[kind]
    stepwise = diagnosis.steps.rows or not diagnosis.device_time
    return f"{kind} time {'per step' if stepwise else without_steps}", counting


def opinion(diagnosis: Diagnosis) -> list[str]:
    """Return the verdict of xprof, and whether it agrees."""
    if not (xprof := diagnosis.xprof):
        return []
    agreement = f"This {'agrees with' if xprof.agrees else 'differs from'} tfdoctor."
    compared = "It gives no figure to compare." if xprof.agrees is None else agreement
    return list(filter(None, (text.sentence(xprof.conclusion), compared, text.sentence(xprof.why))))


def subject(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return what was examined and on what: command, device, versions, machine."""
    of = diagnosis.subject
    used, visible = of.devices_used, of.devices_visible
    # A stored report keeps no order of the versions.
    versions = sorted(of.framework, key=lambda one: (FIRST.index(one) if one in FIRST else len(FIRST), one))
    entries = [
        ("command", text.prose(shlex.join(of.command))),
        ("device", text.name(joined(of.device or "", of.device_name, by=" "))),
        ("devices used", f"{used} of {visible}" if None not in (used, visible) else ""),
        ("hosts", text.prose(", ".join(of.hosts))),
        *((text.name(one), text.name(of.framework[one])) for one in versions),
        ("tfdoctor", text.name(diagnosis.version)),
        *((text.name(label), text.name(value)) for label, value in diagnosis.machine),
        ("exit code", "" if of.exit_code is None else str(of.exit_code)),
    ]
    first = {entry[0].casefold(): entry for entry in reversed(entries) if entry[1]}
    return [entry for entry in entries if first.get(entry[0].casefold()) is entry]
