"""broadcast-cost: repetitions that broadcasting makes unnecessary, and tensors that it expands to be summed."""

from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import Broadcast, Broadcasts
from tfdoctor.rules.operations import broadcast_cost
from tfdoctor.rules.operations.broadcast_cost import ExpandedProduct, ExpandedProducts

TILE = took("model/Tile", "Tile", 4.0, at=script(22))
GPU, CPU = Hardware(DeviceKind.GPU, "x"), Hardware(DeviceKind.CPU, "x")
SMALL, FULL = ["float32", [8, 1, 64]], ["float32", [8, 128, 64]]


def example(
    repeated: tuple[Broadcast, ...] = (Broadcast(TILE, 128.0, (TILE,)),),
    expanded: tuple[ExpandedProduct, ...] = (), total_ms: float = 24.0,
) -> Verdict:  # fmt: skip
    """A row of weights is repeated 128 times by `tf.tile`."""
    rows = (*(one.row for one in repeated), *(one.row for one in expanded))
    operations = training_step(total_ms, *rows)
    products = ExpandedProducts(expanded) if expanded else None
    return broadcast_cost.check(Broadcasts(repeated), operations, None, None, products)


def use(name: str, kind: str, sources: Any, given: Any = FULL, made: Any = FULL) -> Any:
    return graph_operation(name, kind, [given] * len(sources), [made], **{"from": sources})


def check(
    given: Any = (8, 1, 64), ms: float = 20.0, user: str = "Mul", name: str = "tile", hardware: Hardware = GPU
) -> Verdict:
    program = program_of(use(name, "Tile", [None], ["float32", list(given)]), use("use", user, [0, None]))
    tile = took(name, "Tile", ms, operation=program.by_name[name])
    return Chart([program, training_step(100.0, tile), hardware]).call(broadcast_cost.check)


def read_twice() -> Verdict:
    """Read a repetition forward and backward: a third of the bytes of a product with two operands."""
    back = use("gradient_tape/use/Mul", "Mul", [1, 0])
    program = program_of(use("tile", "Tile", [None], SMALL), use("use", "Mul", [None, 0]), back)
    size = 8 * 128 * 64 * 4
    times = [
        OperationTime(
            name=operation.name, type=operation.type, ms=3.0, operation=operation,
            nbytes=size * (129 / 128 if operation.type == "Tile" else 3),
        )
        for operation in program.operations
    ]  # fmt: skip
    return Chart([program, Operations(tuple(times)), GPU]).call(broadcast_cost.check)


def activated(last: str, hardware: Hardware) -> Verdict:
    """Repeat a vector 128 times before its sigmoid, whose result another operation takes."""
    tile, gate = use("tile", "Tile", [None], SMALL), use("gate", "Sigmoid", [0])
    program = program_of(tile, gate, use("use", last, [1, None]))
    return Chart([program, Operations(all_ran(program, 10.0)), hardware]).call(broadcast_cost.check)


def expanded(ms: float, times: float = 64.0, kind: str = "Sub") -> Verdict:
    """Judge a tensor that is expanded, in a step of 100 ms of compute."""
    row = took("sub", kind, ms, at=script(9))
    return example((), (ExpandedProduct(row, (64, 64, 32), times, (row,)),), total_ms=100.0)


sick = example
healthy = described("The step repeats no tensor.", example, ())


# Tensors that are expanded and summed: what else may use them, and what belongs to them
LEFT, RIGHT, BIG, OUT = (["float32", shape] for shape in ([64, 1, 32], [1, 64, 32], [64, 64, 32], [64, 64]))
SCALAR = ["float32", []]


def graph(*more: dict[str, Any], first: str = "Sub", left: Any = LEFT) -> list[tuple[ExpandedProduct, set[str]]]:
    """Measure a graph of two operands (0, 1), the operation that expands them (2), and more; each takes 1 ms."""
    operands = use("a", "Placeholder", [], made=left), use("b", "Placeholder", [], made=RIGHT)
    expand = graph_operation("expand", first, [left, RIGHT], [BIG], **{"from": [0, 1]})
    program = program_of(*operands, expand, *more)
    found = Chart([program, Operations(all_ran(program, 1.0, "Placeholder"))]).fact(ExpandedProducts)
    return [(one, {row.name for row in one.rows}) for one in found.rows]


def big(name: str, kind: str, *sources: int, given: Any = BIG, made: Any = BIG) -> Any:
    return use(name, kind, list(sources), given, made)


def total(source: int) -> Any:
    return big("sum", "Sum", source, made=OUT)


def power(exponent: float | None) -> list[Any]:
    constant = graph_operation("two", "Const", [], [SCALAR], attrs={"scalar": exponent})
    raised = graph_operation("power", "Pow", [BIG, SCALAR], [BIG], **{"from": [2, 3]})
    return [constant, raised, total(4)]


def weighted(*shape: int) -> list[Any]:
    times = graph_operation("times", "Mul", [["float32", list(shape)], BIG], [BIG], **{"from": [3, 2]})
    return [use("w", "Placeholder", [], made=["float32", list(shape)]), times, total(4)]


SQUARE, SQUARED = big("square", "Square", 2), [big("square", "Square", 2), total(3)]


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a fiftieth of the step, and less"] = check(ms=2.0), check(ms=1.9)
    told["operations that do not broadcast"] = [check(user=user) for user in ("MatMul", "ConcatV2", "Conv2D")]
    told["dimensions of size one broadcast"] = [check(shape) for shape in ((8, 128, 1), (8, 2, 64), (2, 128, 1))]
    told["TensorFlow's own repetition"] = check(name="gradient_tape/mean/Tile")
    told["a CPU broadcasts no faster than it repeats"] = check(hardware=CPU)
    told["what reads the repetition reads the small tensor instead"] = read_twice()
    told["an activation belongs before the repetition, whatever reads it, on any device"] = [
        activated(last, hardware) for last, hardware in (("Mul", GPU), ("MatMul", GPU), ("Mul", CPU))
    ]
    told["what is expanded takes a fiftieth of the step, and less"] = expanded(2.0), expanded(1.9)
    told["what is expanded 16 times, and less"] = expanded(9.0, 16.0), expanded(9.0, 15.9)
    told["a matmul computes distances, an einsum products"] = expanded(20.0), expanded(20.0, kind="Mul")
    row = took("sub", "Sub", 4.0)
    told["both faults are one: a ceiling"] = example(expanded=(ExpandedProduct(row, (64, 64, 32), 64.0, (row,)),))

    def measured(*more: dict[str, Any], **given: Any) -> list[str]:
        return [
            f"{one.remedy.action}, {one.shape}, {one.times:g} times as large: {', '.join(sorted(names))}"
            for one, names in graph(*more, **given)
        ]

    told["the square as a power, of other norms, and of recordings that do not tell the exponent"] = [
        [*measured(*power(exponent)), f"of {exponent}"] for exponent in (2.0, 3.0, None)
    ]
    told["products summed without a square, and TensorFlow's squared differences"] = measured(total(2), first="Mul")
    told[...] = measured(total(2), first="SquaredDifference")
    told["other distances"] = [measured(big("other", kind, 2), total(3)) for kind in ("Abs", "Tanh", "MatMul")]
    told["another takes it, too"] = [
        measured(*SQUARED, big("beside", kind, 2)) for kind in ("Abs", "Tanh", "MatMul")
    ]
    told["an operand as large as the result"] = measured(*SQUARED, left=BIG)
    told["residuals of cluster centers are two products"] = measured(*weighted(64, 64, 1))
    told["weights of the expanded size are no factor of a matmul"] = measured(*weighted(64, 64, 32))
    told["squared differences that are summed need no expansion"] = measured(SQUARE, total(3))
    told[...] = measured(big("square", "Mul", 2, 2), total(3))
    told["gradients of the expanded size belong to it"] = measured(
        *SQUARED,
        big("gradient_tape/Tile", "Tile", 4, given=OUT),
        big("gradient_tape/Mul", "Mul", 2, 5),
        big("gradient_tape/Sum", "Sum", 6, made=LEFT),
        big("gradient_tape/sqrt", "SqrtGrad", 4, given=OUT, made=OUT),
    )
    told["the gradient of a sum takes the shape of the product, and that of a product its operands"] = measured(
        total(2),
        big("gradient_tape/Tile", "Tile", 3, given=OUT),
        graph_operation("gradient_tape/expand/Mul", "Mul", [BIG, RIGHT], [BIG], **{"from": [4, 1]}),
        big("gradient_tape/expand/Sum", "Sum", 5, made=LEFT),
        big("gradient_tape/expand/Reshape", "Reshape", 6, given=LEFT, made=["float32", [64, 32]]),
        big("gradient_tape/expanded/Mul", "Mul", 0, 0, given=LEFT),
        first="Mul",
    )
    outer = graph_operation("gradient_tape/outer", "Mul", [LEFT, RIGHT], [BIG], **{"from": [0, 1]})
    told["the gradient of an outer product is not judged"] = measured(outer, total(3), big("other", "Tanh", 2))
