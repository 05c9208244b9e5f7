from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.late_gather.selected_products import SelectedProducts

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
    kept: float = share_limit(0.5)
    share: float = share_limit(0.05)


def check(selected: SelectedProducts, operations: Operations, device: Device, limits: Limits = Limits()) -> Verdict:
    """Add up what the rows that nothing uses take, and compare it with the compute time."""
    products = [one for one in selected.products if one.kept <= limits.kept]
    lines = [f" at {location(one.product.at)}" if one.product.at else "" for one in products]
    kept = [percent(one.kept) for one in products]
    action = "Select the {} of the rows before the product{}"
    summary = f"A product is computed for all rows{lines[0]}, and {kept[0]} of them are used" if products else ""
    table = Table.of(
        selected.products,
        ("product", lambda one: one.product.name),
        ("product's line", lambda one: one.product.at),
        ("computed", lambda one: _sizes(one.of)),
        ("selected", lambda one: _sizes(one.to)),
        ("time of all rows per step", lambda one: ms(one.ms)),
    )
    left = [(row, one.left(row, operations.streaming_rate)) for one in products for row in one.rows if row.ms]
    part = operations.part(sum(row.ms * (1.0 - share) for row, share in left))
    return spared(
        part, limits.share, "for rows that nothing uses", left,
        healthy=f"Rows of products that nothing uses take {part}",
        finding=f"{summary}: the others take {part}",
        remedies=[
            Remedy(action.format(share, line), CODE["code"], one.at)
            for share, line, one in zip(kept, lines, products, strict=True)
        ],
        more=[table],
        bound=Bound.EXPECTED if device.kind is DeviceKind.CPU else Bound.AT_MOST,
        narrows=True,
        alike=len(products) - 1,
    )  # fmt: skip


def _sizes(shape: Shape) -> str:
    return " x ".join("batch" if size is None else str(size) for size in shape)
