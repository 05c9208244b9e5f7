"""What devices cost per hour, as the user says; prices are never guessed."""

from collections.abc import Iterable
from typing import Self

from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.record import Record

LOWEST, HIGHEST = 0.0001, 100_000.0  # US dollars per hour: less than a virtual core, more than any device


class DevicePrices(Record):
    """US dollars per device-hour: for devices with a name, then for all others."""

    named: tuple[tuple[str, float], ...] = ()
    others: float | None = None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """Read prices: ``3.20`` for all devices, ``H100=3.20`` for those whose name contains H100.

        Raises:
            ConfigError: one is not a price.
        """
        parts = [text.rpartition("=") for text in texts]
        named = [(_name(name), _price(price)) for name, sign, price in parts if sign]
        others = [_price(price) for _, sign, price in parts if not sign]
        return cls(tuple(named), others[-1] if others else None)

    def of(self, device: str) -> float | None:
        """Return the price of a device by its name; None where none was given."""
        named = (price for name, price in self.named if name.lower() in device.lower())
        return next(named, self.others)

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return bool(self.named) or self.others is not None


def _name(text: str) -> str:
    name = text.strip()
    if not name or "=" in name or "," in name:
        raise ConfigError(
            f"--usd-per-device-hour: {name!r} is not the name of one device: repeat the option for each."
        )
    return name


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = 0.0
    if not LOWEST <= price <= HIGHEST:
        raise ConfigError(
            f"--usd-per-device-hour: {text.strip()!r} is not a price: write 3.20, or H100=3.20 for a device."
        )
    return price
