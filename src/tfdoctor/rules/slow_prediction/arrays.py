"""Which names of a file are arrays of NumPy, whose rows all have one shape."""

import libcst as cst

from tfdoctor.edits.module import dotted, last_name
from tfdoctor.edits.values import Values

# Methods of arrays, and of tables, whose result is an array.
METHODS = frozenset({"astype", "reshape", "copy", "to_numpy", "clip", "round", "transpose"})
# Functions of NumPy that return something else than one array of numbers.
LISTS = frozenset({"split", "array_split", "meshgrid", "where", "nonzero", "load", "broadcast_arrays"})
# Data sets of Keras whose examples all have one shape.
SETS = frozenset({"mnist", "fashion_mnist", "cifar10", "cifar100", "california_housing", "boston_housing"})


def is_array(values: Values, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> bool:
    """Say whether an expression is an array beyond doubt."""
    if id(value) in seen:
        return True  # x = x / 255: what else it stands for decides
    seen |= {id(value)}
    match value:
        case cst.Name():
            sources = values.sources(value)
            plain = all(not source.each and source.place < 0 for source in sources)
            whole = plain and all(is_array(values, source.value, seen) for source in sources)
            return whole if sources else _is_loaded(values, value)
        case cst.Call():
            return _is_made(values, value, seen)
        case cst.Subscript(value=rows, slice=[cst.SubscriptElement(slice=cst.Slice()), *_]):
            return is_array(values, rows, seen)
        case cst.BinaryOperation(left=left, right=right):
            return is_array(values, left, seen) or is_array(values, right, seen)
        case _:
            return False


def _is_made(values: Values, call: cst.Call, seen: frozenset[int]) -> bool:
    """Say whether a call makes an array: a function of NumPy, or a method of an array or a table."""
    if not isinstance(call.func, cst.Attribute):
        return False
    receiver, name = call.func.value, last_name(call.func)
    origins = values.module.imports.get(dotted(receiver).partition(".")[0], set())
    if {origin.partition(".")[0] for origin in origins} == {"numpy"}:  # np, np.random
        # An array may hold objects: lists of different lengths.
        given = call.args[0].value if call.args else None
        typed = len(call.args) > 1 or any(argument.keyword for argument in call.args)
        untold = name in {"array", "asarray"} and not isinstance(given, cst.List | cst.ListComp) and not typed
        return name not in LISTS and not untold and "object" not in {last_name(one.value) for one in call.args}
    return name == "to_numpy" or (name in METHODS and is_array(values, receiver, seen))


def _is_loaded(values: Values, name: cst.Name) -> bool:
    """Say whether a name gets a part of one of Keras' data sets: ``(x, y), _ = mnist.load_data()``."""
    bound = values.module.bound(name)
    made = next(values.module.around(bound[0], cst.Assign), None) if len(bound) == 1 else None
    if made is None or not isinstance(made.value, cst.Call):
        return False
    parts = dotted(made.value.func).split(".")
    return parts[-1] == "load_data" and bool(SETS & set(parts))
