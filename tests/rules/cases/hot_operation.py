"""The cases of hot-operation: what its tests judge, and the examples of its page."""

from collections.abc import Mapping

from tests.rules.kit import *
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.rules.operations.hot_operation import check
from tfdoctor.rules.operations.hot_operation.cheaper_forms import CheaperForms


def group(
    kind: str = "Tile",
    time_ms: float = 20.0,
    least: float | None = 0.4,
    calls: float = 1.0,
    at: Location = Location("train.py", 14),
    **more: Any,
) -> OperationGroup:
    """Build the group of one operation."""
    row = OperationTime(name=kind, type=kind, ms=time_ms, calls=calls, at=at)
    missing = "" if least is not None else "shapes unknown"
    parts: dict[str, Any] = {"layers": (), "rows": (row,), "missing": missing}
    return OperationGroup(type=kind, at=at, least_ms=least, **(parts | more))


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    *groups: OperationGroup,
    step: Breakdown | None = None,
    left: Mapping[str, float] | None = None,
    subjects: frozenset[str] = frozenset(),
    lines: HostLines | None = None,
    unnamed: str = "",
    calls: LayerCalls | None = None,
    loops: LoopWork | None = None,
    model: StepModel | None = None,
    forms: CheaperForms | None = None,
    optimizer: OptimizerWork | None = None,
) -> Verdict:
    """Repeating a tensor takes 20 of 40 ms, where reading and writing it takes 0.4 ms."""
    return check(
        Unexplained({Stage.DEVICE: 38.0} if left is None else left, subjects),
        step or Breakdown.of(device=38.0, host=2.0),
        OperationGroups(groups or (() if unnamed else (group(),)), unnamed),
        lines,
        calls,
        loops,
        model,
        forms,
        optimizer,
    )


sick = example


def healthy() -> Verdict:
    """An operation takes half of the step, and its bytes need nearly all of that time."""
    return example(group(least=18.0))
