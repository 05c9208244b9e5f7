"""How many rows an array of the file has, where the file shows it: the number, or the name that holds it."""

from collections.abc import Sequence

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, dotted, last_name, named, positional
from tfdoctor.edits.values import BoundValue, Values

# NumPy's functions that make an array, and the place of its size among their arguments.
SIZES = {
    "choice": 1, "empty": 0, "full": 0, "integers": 2, "normal": 2, "ones": 0, "randint": 2, "rand": 0, "randn": 0,
    "random": 0, "standard_normal": 0, "uniform": 2, "zeros": 0,
}  # fmt: skip

# Functions and methods whose result has the rows of what they get.
SAME = frozenset(["array", "asarray", "constant", "convert_to_tensor", "float32", "copy", "astype"])

GENERATORS = frozenset(["RandomState", "default_rng"])

_NEW_AXIS = ("None", "np.newaxis", "numpy.newaxis", "tf.newaxis")


class Rows:
    """Answers for one file: "64", or "batch_size" with the place that binds it; "" is unknown."""

    def __init__(self, module: SyntaxTree) -> None:
        self.module, self.values = module, Values(module)

    def number(self, value: cst.BaseExpression | None) -> str:
        """Return a whole number as it is written, or a name that is bound once, with its binding."""
        match value:
            case cst.Integer(value=written):
                return written
            case cst.Name():
                known = self.values.object(value)
                if isinstance(known, cst.Integer):
                    return known.value
                bound = self.module.bound(value)
                return f"{value.value}@{self.module.span(bound[0])[0]}" if len(bound) == 1 else ""
            case _:
                return ""

    def of(self, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> str:
        """Return how many rows an array or a tensor has."""
        if id(value) in seen:
            return ""
        seen |= {id(value)}
        match value:
            case cst.Name():
                return _one([self._bound(source, seen) for source in self.values.sources(value)])
            case cst.Subscript(slice=[cst.SubscriptElement(slice=part), *_]):
                return self._part(part, seen)
            case cst.Call():
                return self._made(value, seen)
            case _:
                return ""

    def _bound(self, source: BoundValue, seen: frozenset[int]) -> str:
        if source.each:
            return ""
        if source.place < 0:
            return self.of(source.value, seen)
        match source.value:  # states, actions = map(np.array, zip(*batch))
            case cst.Call(
                func=cst.Name(value="map"),
                args=[_, cst.Arg(value=cst.Call(func=cst.Name(value="zip"), args=[whole]))],
            ) if whole.star == "*":
                return self._length(whole.value, seen)
            case cst.Tuple(elements=elements) if source.place < len(elements):
                return self.of(elements[source.place].value, seen)
            case _:
                return ""

    def _length(self, value: cst.BaseExpression, seen: frozenset[int]) -> str:
        """Return the length of a list."""
        match value:
            case cst.Name():
                found = self.values.sources(value)
                whole = [source for source in found if source.whole]
                lengths = [self._length(source.value, seen) for source in whole]
                return _one(lengths) if len(whole) == len(found) else ""
            case cst.Call(args=[_, cst.Arg(value=size)]) if self._samples(value):
                return self.number(size)
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                plain = all(isinstance(element, cst.Element) for element in elements)
                return str(len(elements)) if plain else ""
            case cst.ListComp(for_in=cst.CompFor(iter=through, ifs=[], inner_for_in=None)):
                return self._length(through, seen)
            case _:
                return self.of(value, seen)

    def _samples(self, call: cst.Call) -> bool:
        """Say whether a call is random.sample(values, size)."""
        first = dotted(call.func).partition(".")[0]
        origins = self.module.imports.get(first, set())
        return last_name(call.func) == "sample" and origins <= {"random", "random.sample"} != set()

    def _part(self, part: cst.BaseSlice, seen: frozenset[int]) -> str:
        """Return the rows of ``x[part]``."""
        match part:
            case cst.Index(value=index):
                written = self.module.written(index)
                return "1" if written in _NEW_AXIS else self.of(index, seen)
            case cst.Slice(lower=None, upper=upper, step=None):
                return self.number(upper)
            case cst.Slice(
                lower=lower, upper=cst.BinaryOperation(left=left, operator=cst.Add(), right=size), step=None
            ) if lower is not None and self.module.written(left) == self.module.written(lower):
                return self.number(size)
            case _:
                return ""

    def _made(self, call: cst.Call, seen: frozenset[int]) -> str:
        name, args = last_name(call.func), [argument.value for argument in call.args]
        if name in SAME:
            method = isinstance(call.func, cst.Attribute) and name in ("astype", "copy")
            inner = call.func.value if method and isinstance(call.func, cst.Attribute) else None
            return self._length(inner or args[0], seen) if inner or args else ""
        if name == "expand_dims" and len(args) > 1:
            return "1" if self.module.written(args[1]) == "0" else ""
        if name == "reshape":  # x.reshape(1, 4), x.reshape([1, 4]) or np.reshape(x, [1, 4])
            of_module = dotted(call.func).partition(".")[0] in self.module.imports
            shape = args[1:] if of_module else args
            return self._first(shape[0]) if shape else ""
        if name in ("concatenate", "concat"):
            return self._joined(call, seen)
        if name == "stack" and len(args) == 1:
            return self._length(args[0], seen)
        return self._sized(call, name) if self._is_array(call) else ""

    def _joined(self, call: cst.Call, seen: frozenset[int]) -> str:
        """Return the sum of the rows of a list of arrays."""
        parts = call.args[0].value if len(call.args) == 1 else None
        if not isinstance(parts, cst.List):
            return ""
        rows = [self.of(element.value, seen) for element in parts.elements]
        return str(sum(map(int, rows))) if all(row.isdecimal() for row in rows) else ""

    def _is_array(self, call: cst.Call) -> bool:
        """Say whether a call is one of NumPy or TensorFlow, or of a random generator of NumPy."""
        func = call.func
        root = dotted(func).partition(".")[0]
        known = {origin.partition(".")[0] for origin in self.module.imports.get(root, ())}
        if known and known <= {"numpy", "tensorflow"}:
            return True
        receiver = func.value if isinstance(func, cst.Attribute) else None  # rng of rng.normal
        made = self.values.sources(receiver) if isinstance(receiver, cst.Name) else []
        return bool(made) and all(
            isinstance(source.value, cst.Call) and last_name(source.value.func) in GENERATORS for source in made
        )

    def _sized(self, call: cst.Call, name: str) -> str:
        by_name, by_place, place = named(call), positional(call), SIZES.get(name)
        size = by_name.get("size", by_name.get("shape"))
        if size is None and place is not None and place < len(by_place):
            size = by_place[place]
        return self._first(size) if size is not None else ""

    def _first(self, size: cst.BaseExpression) -> str:
        match size:
            case cst.Tuple(elements=[first, *_]) | cst.List(elements=[first, *_]):
                return self.number(first.value)
            case _:
                return self.number(size)


def _one(found: Sequence[str]) -> str:
    """Return what all agree on, else ""."""
    return found[0] if found and len(set(found)) == 1 else ""
