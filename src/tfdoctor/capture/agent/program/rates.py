"""The optimizers whose learning rate is zero from their making on, for as long as it stays so."""

from __future__ import annotations

from ..process import tensorflow_api
from ..process.journal import guarded, quietly
from ..process.stack import here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..process.journal import Journal
    from ..process.stack import Line


class ZeroRates:
    """Such optimizers by name: the variable of the rate, which outlives the optimizer so, and the line."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.names: set[str] = set()  # of all optimizers
        self.rates: dict[str, tuple[Foreign, Line | None]] = {}

    @guarded("learning rate")
    def made(self, optimizer: Foreign, given: object) -> None:
        """An optimizer was made; of two with the same name, the scopes of a graph are not told apart.

        The rate that it was given is looked at, not its variable: reading that makes a tensor, and functions traced
        later have other numbers in their names, which a script's messages show.
        """
        name = str(optimizer.name)
        if name in self.names:
            self.rates.pop(name, None)
        elif given == 0.0 and tensorflow_api.context().executing_eagerly():
            self.rates[name] = (optimizer._learning_rate, here())
        self.names.add(name)

    def describe(self) -> list[dict[str, object]]:
        """Return those whose rate is still zero; one that was another number once is forgotten."""
        self._look()
        return [{"name": name, "at": line} for name, (_, line) in self.rates.items()]

    def _look(self) -> None:
        look = quietly("learning rate", self.log)(_is_zero)
        self.rates = {name: kept for name, kept in self.rates.items() if look(kept[0])}


def _is_zero(rate: Foreign) -> bool:
    """Say whether a rate is the number zero."""
    return float(rate.numpy()) == 0.0
