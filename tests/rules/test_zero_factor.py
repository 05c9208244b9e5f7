"""zero-factor: both sides of the limit, and the remedy for gradients and for losses."""

from tests.rules.kit import *
from tfdoctor.rules.operations.zero_factor import DroppedWork, check

GRADIENT = OperationTime(
    name="gradient_tape/backbone/conv/Conv2DBackpropFilter", type="Conv2DBackpropFilter", ms=90.0, at=script(12)
)
UPDATE = took("adam/Sub", "Sub", 14.0, at=script(30))
DROPPED = DroppedWork(60, script(28), of_gradients=True, rows=(GRADIENT, UPDATE))


def example(dropped: DroppedWork = DROPPED, total: float = 198.0) -> Verdict:
    """The gradients of a backbone are multiplied by 0 at line 28, to freeze it."""
    return check(dropped, training_step(total, *dropped.rows))


def rows(text: str) -> tuple[tuple[str, str, str], ...]:
    """Operations of (name, type, sources) in a text; a source is a name, with the number of its result."""
    return tuple((name, kind, " ".join(of)) for name, kind, *of in (row.split() for row in text.split(";")))


sick = example
healthy = described("No gradient is multiplied by zero.", example, DroppedWork())


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the compute, and less"] = [
        example(replace(DROPPED, rows=(replace(GRADIENT, ms=ms),)), total=100.0) for ms in (5.0, 4.9)
    ]
    told["a loss is multiplied by zero"] = example(replace(DROPPED, of_gradients=False))


# What only leads to zeros: gradients, averages and updates of an optimizer, losses; and what others use.
FORWARD = rows(
    "x Placeholder; w VarHandleOp; v VarHandleOp; read_w ReadVariableOp w; read_v ReadVariableOp v; "
    "body MatMul x read_w; head MatMul body read_v"
)
BACKWARD = rows(
    "gradient_tape/head/dv MatMul body head; gradient_tape/head/dx MatMul head read_v; "
    "gradient_tape/body/dw MatMul x gradient_tape/head/dx; factor=0 Const; "
    "frozen Mul gradient_tape/body/dw factor=0"
)
STEP = (
    *FORWARD,
    *BACKWARD,
    *rows("update_v AssignSubVariableOp v gradient_tape/head/dv; update_w AssignSubVariableOp w frozen"),
)


def _operation(name: str, kind: str, sources: list[str], names: list[str]) -> Op:
    made = [source.partition(":") for source in sources]
    attrs = {"scalar": float(name.partition("=")[2] or 1)} if kind == "Const" else {}
    result = ["resource", []] if kind == "VarHandleOp" else ["float32", [8, 8]]
    ports, origins = [int(port or 0) for _, _, port in made], [names.index(source) for source, _, _ in made]
    more: dict[str, Any] = {"from": origins, "ports": ports, "at": ["/train.py", 28], "attrs": attrs}
    return graph_operation(name, kind, [["float32", [8, 8]]] * len(sources), [result], **more)


def measured(*rows: tuple[str, str, str]) -> DroppedWork:
    """Measure a graph whose operations but constants and variables each take 1 ms."""
    names = [name for name, _, _ in rows]
    program = program_of(*(_operation(name, kind, sources.split(), names) for name, kind, sources in rows))
    ran = Operations(all_ran(program, 1.0, "Const", "VarHandleOp", "Placeholder"))
    return Chart([program, ran]).fact(DroppedWork)


def dropped(*rows: tuple[str, str, str]) -> str:
    found = measured(*rows)
    names = ", ".join(sorted(row.name for row in found.rows)) or "nothing"
    kind = "of gradients" if found.of_gradients else "of others"
    return f"{names}; {found.factors} factors {kind} at {shown(found.at)}"


@golden_cases
def test_dropped(told: Cases) -> None:
    told["gradients of frozen weights are dropped with what leads to them alone"] = dropped(*STEP)
    others = [tuple(part.replace("factor=0", "factor=1") for part in row) for row in STEP]
    told["another factor drops nothing"] = dropped(*((name, kind, sources) for name, kind, sources in others))
    told["trap: the norm of a gradient is logged"] = dropped(*STEP, ("norm", "L2Loss", "gradient_tape/body/dw"))
    adam = rows(
        "m VarHandleOp; n VarHandleOp; taken IdentityN frozen gradient_tape/head/dv; "
        "read_m ReadVariableOp m; less_m Sub taken:0 read_m; keep_m AssignAddVariableOp m less_m; "
        "again_m ReadVariableOp m; update_w AssignSubVariableOp w again_m; read_n ReadVariableOp n; "
        "less_n Sub taken:1 read_n; keep_n AssignAddVariableOp n less_n; again_n ReadVariableOp n; "
        "update_v AssignSubVariableOp v again_n"
    )
    told["averages of zeros stay zero, though one call takes all gradients"] = dropped(*FORWARD, *BACKWARD, *adam)
    lazy = rows(
        "m VarHandleOp; keep_m AssignAddVariableOp m frozen; rows ResourceScatterUpdate m x head; "
        "read_m ReadVariableOp m; less_m Sub frozen read_m; update_w AssignSubVariableOp w less_m"
    )
    told["an average that a lazy optimizer scatters rows to"] = dropped(*FORWARD, *BACKWARD, *lazy)
    decay = ("shrink", "Mul", "read_w x"), ("decay_w", "AssignSubVariableOp", "w shrink")
    told["the decay of a frozen weight stays"] = dropped(*STEP, *decay)
    zero = ("factor=0", "Const", "")
    told["a loss of weight zero is dropped with what leads to it"] = dropped(
        *FORWARD,
        *rows("penalty Square read_w; factor=0 Const; weighed Mul penalty factor=0"),
        *rows("loss AddV2 head weighed; out Identity loss"),
    )
    told["a result of the step stays although a product with zero takes it"] = dropped(
        *FORWARD, zero, ("zeros", "Mul", "head factor=0"), ("out", "Identity", "head")
    )
    for scope, name in (("gradient_tape/", "the tape's own zeros"), ("", "zeros of the user")):
        told[f"{name} as a factor"] = dropped(*FORWARD, zero, (f"{scope}mul", "Mul", "head factor=0"))
