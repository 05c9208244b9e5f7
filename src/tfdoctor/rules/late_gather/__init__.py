from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.program import Shape
from tfdoctor.rules.late_gather.selected_products import SelectedProduct, SelectedProducts

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
PRECONDITIONS = (
    found(
        SelectedProducts,
        lambda selected: selected.products,
        "No rows are selected from a product that nothing else uses",
    ),
)
BY_HAND = "the selection has to move before the call of the layer, often into another function"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which selections are worth a change of their order."""

    kept: float = share_limit(
        0.5, "Largest share of the rows that is selected: above it, most of the product is used"
    )
    share: float = share_limit(
        0.05, "Smallest share of the compute time for rows that nothing uses; below it, the change is not worth it"
    )


def check(selected: SelectedProducts, operations: Operations, device: Device, limits: Limits = Limits()) -> Verdict:
    """Add up what the rows that nothing uses take, and compare it with the compute time."""
    products = [one for one in selected.products if one.kept <= limits.kept]
    bound = Bound.EXPECTED if device.kind is DeviceKind.CPU else Bound.AT_MOST
    changed = [pair for one in products for pair in _changed(one, operations.streaming_rate)]
    spared_ms = sum(row.ms * (1.0 - left) for row, left in changed)
    part = operations.part(spared_ms)
    evidence = (*part.measures("for rows that nothing uses", limits.share), _table(selected))
    if part.share < limits.share:
        return Healthy(summary=f"Rows of products that nothing uses take {part}", evidence=evidence)
    first = products[0]
    return Finding(
        summary=f"A product is computed for all rows{_at(first.product)}, and {percent(first.kept)} of them are "
        f"used: the others take {part}",
        evidence=evidence,
        remedies=tuple(Remedy(_action(one), CODE["code"], one.at) for one in products),
        effects=tuple(replace(row.scaled(left, bound), narrows=True) for row, left in changed),
        alike=len(products) - 1,
    )


def _at(product: OperationTime) -> str:
    return f" at {location(product.at)}" if product.at else ""


def _changed(one: SelectedProduct, rate: float | None) -> Iterator[tuple[OperationTime, float]]:
    """Yield the operations, each with the share of its time that is left."""
    for row in one.rows:
        yield row, one.left(row, rate)


def _table(selected: SelectedProducts) -> Table:
    return Table.of(
        selected.products,
        ("product", lambda one: one.product.name),
        ("product's line", lambda one: one.product.at),
        ("computed", lambda one: _sizes(one.of)),
        ("selected", lambda one: _sizes(one.to)),
        ("time of all rows per step", lambda one: ms(one.ms)),
    )


def _sizes(shape: Shape) -> str:
    return " x ".join("batch" if size is None else str(size) for size in shape)


def _action(one: SelectedProduct) -> str:
    return f"Select the {percent(one.kept)} of the rows before the product{_at(one.product)}"
