"""float64-compute: time in float64 operations, and what made the values so wide."""

from tests.rules.kit import *
from tfdoctor.rules.precision import float64_compute
from tfdoctor.rules.precision.float64_compute import Float64Work, Origin

CPU = Hardware(DeviceKind.CPU, "x", float32=FLOAT32_ON_AVX512)
GPU = Hardware(DeviceKind.GPU, "x")
GRADIENT = took("gradient_tape/relu", "ReluGrad", 50.0)
SIZE = [64, 64]


def example(dtype: str = "float64") -> Verdict:
    """A matmul of float64 arrays takes 20 of 30 ms."""
    tensor = (dtype, (256, 1024))
    inputs = (tensor, (dtype, (1024, 1024)))
    graph = Operation(name="model/MatMul", type="MatMul", inputs=inputs, outputs=(tensor,))
    row = took(graph.name, "MatMul", 20.0, at=script(12), operation=graph)
    wide = (row,) if dtype == "float64" else ()
    work = Float64Work(wide, (), Origin.ARGUMENT, script(5))
    cpu = Hardware(DeviceKind.CPU, "example", float32=FLOAT32_ON_AVX512)
    return float64_compute.check(work, training_step(30.0, row), cpu)


def check(
    *rows: dict[str, Any], hardware: Hardware = CPU, ms: float = 20.0, idle: str = "", **beside: Any
) -> Verdict:
    """Judge a step in which each recorded operation takes ``ms``, but for the type ``idle``."""
    program = program_of(*rows, **beside)
    ran = all_ran(program, ms, "Placeholder", idle)
    facts = Chart([program, Operations((*ran, GRADIENT)), hardware])
    return rule_of(float64_compute).apply(facts)


def op(name: str, kind: str, dtype: str, *sources: int, given: str = "", line: int = 0) -> Any:
    """An operation with results of a type; its operands have the same, or another one."""
    more: Any = {"at": ["train.py", line]} if line else {}
    inputs = [[given or dtype, SIZE] for _ in sources]
    return graph_operation(name, kind, inputs, [[dtype, SIZE]], **{"from": list(sources), **more})


def product(dtype: str = "float64", **more: Any) -> Verdict:
    return check(op("x", "Placeholder", dtype), op("product", "MatMul", dtype, 0, 0, line=7), **more)


def of_layers(policy: str, dtype: str) -> Verdict:
    """Arrays of float64 are given to a layer whose product is float64, with a layer of another type before it."""
    layers = [
        {"name": "first", "class": "Dense", "compute_dtype": policy, "at": ["train.py", 3]},
        {"name": "wide", "class": "Dense", "compute_dtype": dtype, "at": ["train.py", 5]},
    ]
    wide = {**op("p", "MatMul", "float64", 0, 0, line=9), "layer": "wide"}
    run = {"policy": policy, "fit_at": ["train.py", 9]}
    return check(op("x", "Placeholder", "float64"), wide, layers=layers, run=run)


def cast(given: str, line: int = 0) -> Verdict:
    wide = op("wide", "Cast", "float64", 0, given=given, line=line)
    return check(op("x", "Placeholder", given), wide, op("sum", "AddV2", "float64", 1, 1, line=line and line + 1))


sick = example
healthy = described("The arrays are float32.", example, "float32")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["an array of NumPy's default makes the products wide"] = product()
    told["what float32 saves on a GPU is not measured"] = product(hardware=GPU)
    told["what tf.summary computes is no choice of the script"] = [
        check(op("x", "Placeholder", "float64"), op(name, "RealDiv", "float64", 0, 0))
        for name in ("w/write_summary/buckets/truediv", "write_summary_2/x", "w/x")
    ]
    told["narrower types, and wide indices"] = [product(dtype) for dtype in ("float32", "bfloat16", "int64")]
    told["a metric that is summed in float64 on purpose: 3.1 % of the step"] = product(ms=1.6), product(ms=1.5)
    told["after set_floatx the arrays do not matter"] = of_layers("float64", "float64")
    told["the layer of its own type is the one to change"] = of_layers("float32", "float64")
    told["a layer that is called without autocast on what the user made"] = of_layers("float32", "float32")
    told["a cast of float32 is where it begins: its line is to change, and it goes away"] = cast("float32", 3)
    told["a conversion of whole numbers stays"] = cast("int64")
    told["wide variables and constants"] = [
        check(op("w", kind, "float64", line=2), op("p", "MatMul", "float64", 0, 0), idle=kind)
        for kind in ("ReadVariableOp", "Const")
    ]
    told["what makes them wide is another operation"] = check(
        op("x", "Placeholder", "float32"),
        op("p", "Bitcast", "float64", 0, given="float32"),
        op("q", "MatMul", "float64", 1, 1),
    )
    told["a step of unnamed work"] = rule_of(float64_compute).apply(Chart([Program(), UNNAMED_WORK, CPU]))
