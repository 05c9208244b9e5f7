"""The operations of the step by layer: what the rules show of many operations."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Location, Table


@dataclass(frozen=True, slots=True)
class LayerTime(OperationRows):
    """Operations of a layer, or those of one name where the layer is unknown."""

    name: str
    rows: tuple[OperationTime, ...]

    @property
    def at(self) -> Location | None:
        """The line that creates the first of them."""
        return self.rows[0].at


def by_layer(rows: Iterable[OperationTime]) -> list[LayerTime]:
    """Group operations by layer, the layer of most time first."""
    groups: dict[str, list[OperationTime]] = defaultdict(list)
    for row in rows:
        groups[row.layer or row.name].append(row)
    layers = [LayerTime(name, tuple(group)) for name, group in groups.items()]
    return sorted(layers, key=lambda layer: -layer.ms)


def layer_table(rows: Iterable[OperationTime], *, types: bool = True, most: int | None = None) -> Table:
    """Return the table of operations by layer, of the first ``most`` layers alone, with the operations' types."""
    of_types = ("operation types", lambda layer: ", ".join(sorted({row.type for row in layer.rows})))
    return Table.of(
        by_layer(rows),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        *([of_types] if types else []),
        ("number of operations", lambda layer: count(len(layer.rows))),
        ("time per step", lambda layer: ms(layer.ms)),
        most=most,
    )
