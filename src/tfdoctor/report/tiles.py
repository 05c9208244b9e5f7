"""The rectangles of the treemap: layers, their operations, and the many small ones together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tfdoctor.diagnosis import OperationRow
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, location, share
from tfdoctor.terms.record import Record

TILES_SHOWN = 100  # Smaller operations share a tile per layer: nobody can read them, and the table has all


class TreemapTile(Record):
    """A rectangle: a layer with its operations in it, or one operation."""

    id: str
    parent: str
    label: str
    ms: float
    hover: str = ""
    is_leaf: bool = True


def tiles(rows: Sequence[OperationRow]) -> list[TreemapTile]:
    """Return a tile for the compute time, each layer and each operation; small operations share one."""
    layers: Mapping[str, list[OperationRow]] = defaultdict(list)
    for row in rows:
        layers[row.layer].append(row)
    shown = set(map(id, sorted(rows, key=lambda row: -row.self_ms)[:TILES_SHOWN]))
    result = [TreemapTile("all", "", "compute", sum(row.self_ms for row in rows), is_leaf=False)]
    rest: list[OperationRow] = []
    for at, members in enumerate(layers.values()):
        large = [row for row in members if id(row) in shown]
        small = [row for row in members if id(row) not in shown]
        if large:
            result += _layer_tiles(at, large, small)
        else:
            rest += small
    return result + _rest_tile("rest", "all", rest)


def _layer_tiles(at: int, large: Sequence[OperationRow], small: Sequence[OperationRow]) -> list[TreemapTile]:
    """Return the tile of a layer and those of its operations."""
    name = f"layer {at}"
    total = sum(row.self_ms for row in (*large, *small))
    label = text.name(large[0].layer, 60) or "no layer"
    found = [TreemapTile(name, "all", label, total, is_leaf=False)]
    for number, row in enumerate(large):
        facts = (share(row.share), location(row.at), text.name(row.detail, 80))
        hover = " · ".join(filter(None, facts))
        operation = text.name(row.operation, 60)
        found.append(TreemapTile(f"{at}.{number}", name, operation, row.self_ms, hover))
    return found + _rest_tile(f"{at}.rest", name, small)


def _rest_tile(name: str, parent: str, rows: Sequence[OperationRow]) -> list[TreemapTile]:
    if not rows:
        return []
    label = counted(len(rows), "smaller operation")
    return [TreemapTile(name, parent, label, sum(row.self_ms for row in rows))]
