"""The budgets of the settings: what a step may take and must reach, for all devices or for one kind of device."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from tfdoctor.rulebook.values import LONGEST, Key, hint, number, shown
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Quantity, examples_rate, ms, nbytes, ratio

GIGABYTE = 1e9  # Bytes: decimal, as the report shows memory

MS_PER_S = 1000.0

PERCENTAGE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?) ?%")

# The tables for one kind of device.
DEVICES: Mapping[str, DeviceKind] = {str(kind).lower(): kind for kind in DeviceKind}


class BudgetLimit(Record):
    """A budget that is set; ``device`` is the table that it stands in, None for the common one."""

    key: str
    limit: Quantity
    device: DeviceKind | None = None

    @property
    def at_least(self) -> bool:
        """Whether the limit is the smallest value that meets the budget, not the largest."""
        return BUDGET_KEYS[self.key].at_least


class Budget(Record):
    """All budgets that are set, in their order, and where."""

    limits: tuple[BudgetLimit, ...] = ()
    file: Path | None = None
    lines: Mapping[BudgetLimit, int] = field(default_factory=dict)  # of the file

    @classmethod
    def parse(cls, value: object, where: str) -> Self:
        """Read the table.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type or is out of range.
        """
        table = _table(value, where, (*BUDGET_KEYS, *DEVICES))
        limits = _limits(table, where)
        for name in (key for key in table if key in DEVICES):
            at = f"{where}.{name}"
            limits += _limits(_table(table[name], at, BUDGET_KEYS), at, DEVICES[name])
        return cls(tuple(limits))

    def of(self, device: DeviceKind | None) -> tuple[BudgetLimit, ...]:
        """Return the budgets of a kind of device; of an unknown one those of every kind."""
        fitting = (limit for limit in self.limits if device is None or limit.device in (None, device))
        chosen = {limit.key: limit for limit in sorted(fitting, key=lambda limit: limit.device is not None)}
        return tuple(chosen.values())


def _table(value: object, where: str, known: tuple[str, ...] | Mapping[str, object]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table, such as {{ step-ms = 20 }}, not {shown(value)}.")
    if not value:
        raise ConfigError(f"{where} is empty: set at least one of {', '.join(BUDGET_KEYS)}, or remove the table.")
    for key in value:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key[:LONGEST]!r}: {hint(key, known)}")
    return value


def _limits(table: Mapping[str, object], where: str, device: DeviceKind | None = None) -> list[BudgetLimit]:
    set_here = [(key, BUDGET_KEYS[key], item) for key, item in table.items() if key in BUDGET_KEYS]
    return [BudgetLimit(name, key.read(item, f"{where}.{name}"), device) for name, key, item in set_here]


def _amount(of: Callable[[float], Quantity], each: float = 1.0) -> Callable[[object, str], Quantity]:
    """Return what reads a number above 0 of a unit that stands for so many of the quantity's."""

    def read(value: object, where: str) -> Quantity:
        amount = number(value, where)
        if amount <= 0:
            raise ConfigError(f"{where} must be above 0, not {shown(value)}.")
        return of(each * amount)

    return read


def _percentage(value: object, where: str) -> Quantity:
    written = PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    share = float(written[1]) / 100 if written else 0.0
    if not 0 < share < 1:
        raise ConfigError(
            f'{where} must be a percentage between "0%" and "100%", such as "5%", not {shown(value)}.'
        )
    return ratio(share)


# Every budget.
BUDGET_KEYS: Mapping[str, Key] = {
    "step-ms": Key(_amount(ms), "20", "most milliseconds per training step, as the report shows the step"),
    "input-wait": Key(_percentage, '"5%"', "largest share of the step that waits for input"),
    "examples-per-second": Key(
        _amount(examples_rate),
        "1000",
        "fewest training examples per second, of all replicas: the batch size over the step",
        at_least=True,
    ),
    "matrix-unit": Key(
        _percentage,
        '"40%"',
        "smallest share of the matrix unit's peak rate that the step reaches while the device is busy; unknown on "
        "CPUs",
        at_least=True,
    ),
    "roofline": Key(
        _percentage,
        '"40%"',
        "smallest share of the step that its operations would need at the peak rates of the hardware; see "
        "[the distance to the hardware](../how-to/fail-in-ci.md#the-distance-to-the-hardware)",
        at_least=True,
    ),
    "memory-gb": Key(
        _amount(nbytes, GIGABYTE),
        "8",
        "most memory in 10^9 bytes: on a GPU or TPU what TensorFlow's allocator hands out on one device, on a CPU "
        "the resident memory of the run",
    ),
    "run-s": Key(
        _amount(ms, MS_PER_S), "600", "most seconds of the whole run, from the start of the process to its end"
    ),
    "run-start-s": Key(
        _amount(ms, MS_PER_S),
        "15",
        "most seconds of the run until the script's own work begins: the interpreter's start and imports",
    ),
    "run-preparation-s": Key(
        _amount(ms, MS_PER_S),
        "30",
        "most seconds of the run in which it prepares data, outside of training steps and epochs",
    ),
    "epoch-boundary-s": Key(
        _amount(ms, MS_PER_S),
        "2",
        "most seconds between two epochs, without validation and checkpoints that are calls of their own: the mean "
        "of all epochs",
    ),
    "memory-peak-gb": Key(
        _amount(nbytes, GIGABYTE), "16", "most resident memory of the run at any time, in 10^9 bytes"
    ),
}
