"""zero-factor: both sides of the limit, and the remedy for gradients and for losses."""

from tests.rules.kit import *
from tfdoctor.rules.operations.zero_factor import DroppedWork, check

GRADIENT = OperationTime(
    name="gradient_tape/backbone/conv/Conv2DBackpropFilter",
    type="Conv2DBackpropFilter",
    ms=90.0,
    at=Location("train.py", 12),
)


UPDATE = OperationTime(name="adam/Sub", type="Sub", ms=14.0, at=Location("train.py", 30))


DROPPED = DroppedWork(60, Location("train.py", 28), of_gradients=True, rows=(GRADIENT, UPDATE))


def example(dropped: DroppedWork = DROPPED, total: float = 198.0) -> Verdict:
    """The gradients of a backbone are multiplied by 0 at line 28, to freeze it."""
    return check(dropped, Operations.training(total, *dropped.rows))


sick = example


def healthy() -> Verdict:
    """No gradient is multiplied by zero."""
    return example(DroppedWork())


def test_both_sides_of_the_share() -> None:
    works = (replace(DROPPED, rows=(replace(GRADIENT, ms=ms),)) for ms in (5.0, 4.9))
    assert kinds(*(example(dropped, total=100.0) for dropped in works)) == [Finding, Healthy]


def test_the_operations_disappear_at_the_line_of_the_factor() -> None:
    assert as_finding(example()).remedies[0].at == Location("train.py", 28)
    assert {one[2:] for one in effects(example())} == {(0.0, Bound.EXPECTED)}


def test_the_remedy_fits_what_is_multiplied() -> None:
    for of_gradients, code in ((True, "tape.gradient"), (False, "if weight")):
        assert code in first_code(example(replace(DROPPED, of_gradients=of_gradients)))


# What only leads to zeros: gradients, averages and updates of an optimizer, losses; and what others use.


Row = dict[str, Any]


def graph(*rows: tuple[str, str, str]) -> list[Row]:
    """Build operations of (name, type, sources): a source is a name, with the number of its result."""
    names = [name for name, _, _ in rows]
    return [_operation(name, kind, sources.split(), names) for name, kind, sources in rows]


def _operation(name: str, kind: str, sources: list[str], names: list[str]) -> Row:
    made = [source.partition(":") for source in sources]
    attrs = {"scalar": float(name.partition("=")[2] or 1)} if kind == "Const" else {}
    return graph_operation(
        name,
        kind,
        [["float32", [8, 8]]] * len(sources),
        [["resource", []] if kind == "VarHandleOp" else ["float32", [8, 8]]],
        **{"from": [names.index(source) for source, _, _ in made]},
        ports=[int(port or 0) for _, _, port in made],
        at=["/train.py", 28],
        attrs=attrs,
    )


def measured(*rows: tuple[str, str, str]) -> DroppedWork:
    """Measure a graph whose operations but constants and variables each take 1 ms."""
    program = program_of(*graph(*rows))
    ran = Operations(all_ran(program, 1.0, "Const", "VarHandleOp", "Placeholder"))
    return Chart([program, ran]).fact(DroppedWork)


def names(found: DroppedWork) -> set[str]:
    return {row.name for row in found.rows}


FORWARD = (
    ("x", "Placeholder", ""),
    ("w", "VarHandleOp", ""),
    ("v", "VarHandleOp", ""),
    ("read_w", "ReadVariableOp", "w"),
    ("read_v", "ReadVariableOp", "v"),
    ("body", "MatMul", "x read_w"),
    ("head", "MatMul", "body read_v"),
)
BACKWARD = (
    ("gradient_tape/head/dv", "MatMul", "body head"),
    ("gradient_tape/head/dx", "MatMul", "head read_v"),
    ("gradient_tape/body/dw", "MatMul", "x gradient_tape/head/dx"),
    ("factor=0", "Const", ""),
    ("frozen", "Mul", "gradient_tape/body/dw factor=0"),
)
STEP = (
    *FORWARD,
    *BACKWARD,
    ("update_v", "AssignSubVariableOp", "v gradient_tape/head/dv"),
    ("update_w", "AssignSubVariableOp", "w frozen"),
)


def test_gradients_of_frozen_weights_are_dropped_with_what_leads_to_them_alone() -> None:
    found = measured(*STEP)
    assert names(found) == {"gradient_tape/head/dx", "gradient_tape/body/dw", "frozen", "update_w"}
    assert (found.factors, found.of_gradients) == (1, True)
    assert found.at
    assert found.at.line == 28


def test_a_factor_other_than_zero_drops_nothing() -> None:
    rows = [tuple(part.replace("factor=0", "factor=1") for part in row) for row in STEP]
    assert measured(*((name, kind, sources) for name, kind, sources in rows)) == DroppedWork()


def test_a_gradient_that_is_used_elsewhere_stays() -> None:
    """Trap: its norm is logged."""
    norm = ("norm", "L2Loss", "gradient_tape/body/dw")
    assert names(measured(*STEP, norm)) == {"frozen", "update_w"}


def test_averages_that_only_zeros_are_added_to_stay_zero() -> None:
    """The optimizer takes all gradients through one operation and keeps an average of each."""
    adam = (
        ("m", "VarHandleOp", ""),
        ("n", "VarHandleOp", ""),
        ("taken", "IdentityN", "frozen gradient_tape/head/dv"),
        ("read_m", "ReadVariableOp", "m"),
        ("less_m", "Sub", "taken:0 read_m"),
        ("keep_m", "AssignAddVariableOp", "m less_m"),
        ("again_m", "ReadVariableOp", "m"),
        ("update_w", "AssignSubVariableOp", "w again_m"),
        ("read_n", "ReadVariableOp", "n"),
        ("less_n", "Sub", "taken:1 read_n"),
        ("keep_n", "AssignAddVariableOp", "n less_n"),
        ("again_n", "ReadVariableOp", "n"),
        ("update_v", "AssignSubVariableOp", "v again_n"),
    )
    found = names(measured(*FORWARD, *BACKWARD, *adam))
    assert {"less_m", "keep_m", "update_w", "read_m", "again_m"} <= found
    assert not {name for name in found if name.endswith(("_n", "_v"))}
    assert "taken" not in found


def test_an_average_that_a_scatter_writes_may_not_stay_zero() -> None:
    """A lazy optimizer writes the rows of its average that were looked up."""
    lazy = (
        ("m", "VarHandleOp", ""),
        ("keep_m", "AssignAddVariableOp", "m frozen"),
        ("rows", "ResourceScatterUpdate", "m x head"),
        ("read_m", "ReadVariableOp", "m"),
        ("less_m", "Sub", "frozen read_m"),
        ("update_w", "AssignSubVariableOp", "w less_m"),
    )
    assert not {"less_m", "update_w"} & names(measured(*FORWARD, *BACKWARD, *lazy))


def test_the_decay_of_a_frozen_weight_stays() -> None:
    decay = (("shrink", "Mul", "read_w x"), ("decay_w", "AssignSubVariableOp", "w shrink"))
    assert not {"shrink", "decay_w"} & names(measured(*STEP, *decay))


def test_a_loss_of_weight_zero_is_dropped_with_its_gradient() -> None:
    found = measured(
        *FORWARD,
        ("penalty", "Square", "read_w"),
        ("factor=0", "Const", ""),
        ("weighed", "Mul", "penalty factor=0"),
        ("loss", "AddV2", "head weighed"),
        ("out", "Identity", "loss"),
    )
    assert names(found) == {"penalty", "weighed"}
    assert not found.of_gradients


def test_a_result_of_the_step_stays_although_a_product_with_zero_takes_it() -> None:
    found = measured(
        *FORWARD, ("factor=0", "Const", ""), ("zeros", "Mul", "head factor=0"), ("out", "Identity", "head")
    )  # fmt: skip
    assert "head" not in names(found)


def test_the_tapes_own_zeros_are_no_factor_of_the_user() -> None:
    for scope, factors in (("gradient_tape/", 0), ("", 1)):
        assert measured(*FORWARD, ("c=0", "Const", ""), (f"{scope}mul", "Mul", "head c=0")).factors == factors
