"""Which expressions of a file are datasets and tensors beyond doubt."""

from collections.abc import Callable

import libcst as cst

from tfdoctor.edits.chains import MAKERS, TRANSFORMATIONS
from tfdoctor.edits.module import last_name
from tfdoctor.edits.names import BoundValue, Names, part_of

PASSED_ON = frozenset(["tqdm", "trange", "Progbar"])  # Wrappers of a loop's iterable that pass on its elements


class Tensors(Names):
    """The datasets and tensors among the values of one file."""

    def is_dataset(self, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> bool:
        """Say whether an expression is a tf.data dataset, whose elements are tensors."""
        seen |= {id(value)}
        match value:
            case cst.Name():
                return self._all(value, seen, self._holds_dataset)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if (
                method in TRANSFORMATIONS | {"prefetch"}
            ):
                return self.is_dataset(receiver, seen)
            case cst.Call(func=cst.Name(value=name)) if self.function(name):
                return self._returned(name, lambda part: self.is_dataset(part, seen))
            case cst.Call(func=func):
                parts = self.from_tensorflow(func).split(".")
                in_data = "data" in parts and (parts[-1] in MAKERS or parts[-1].endswith("Dataset"))
                return in_data or parts[-1].endswith("dataset_from_directory")
            case _:
                return False

    def _holds_dataset(self, source: BoundValue, seen: frozenset[int]) -> bool:
        if source.each:
            return False
        value = source.value
        if source.place < 0:
            return self.is_dataset(value, seen)
        part = part_of(value, source.place)
        if part is not None:
            return self.is_dataset(part, seen)
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
            return self._returned(
                value.func.value, lambda made: self._holds_dataset(BoundValue(made, source.place), seen)
            )
        return False

    def is_tensor(self, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> bool:
        """Say whether an expression is a tensor, or a structure of tensors."""
        seen |= {id(value)}
        match value:
            case cst.Name():
                return self._all(value, seen, self._holds_tensor)
            case cst.Subscript(value=whole):
                return self.is_tensor(whole, seen)
            case cst.Tuple(elements=elements):
                return all(self.is_tensor(element.value, seen) for element in elements)
            case cst.Call(func=cst.Name(value="next"), args=[cst.Arg(value=iterator), *_]):
                return self._is_iterator(iterator, seen)
            case cst.Call(func=func):
                origin = self.from_tensorflow(func)
                made = origin.rpartition(".")[2][:1].islower() and ".data." not in origin
                return origin.startswith("tensorflow.") and ".keras." not in origin and made
            case _:
                return False

    def _is_iterator(self, value: cst.BaseExpression, seen: frozenset[int]) -> bool:
        """Say whether an expression is the iterator of a dataset."""
        match value:
            case cst.Name():
                return self._all(
                    value, seen, lambda source, known: source.whole and self._is_iterator(source.value, known)
                )
            case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=dataset)]):
                return self.is_dataset(dataset, seen)
            case _:
                return False

    def _holds_tensor(self, source: BoundValue, seen: frozenset[int]) -> bool:
        if not source.each:
            part = part_of(source.value, source.place) if source.place >= 0 else None
            return self.is_tensor(part or source.value, seen)
        match source.value:
            case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if last_name(func) == "enumerate":
                return source.place == 1 and self._yields_tensors(inner, seen)
            case through:
                return self._yields_tensors(through, seen)

    def _yields_tensors(self, value: cst.BaseExpression, seen: frozenset[int]) -> bool:
        match value:
            case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if last_name(func) in PASSED_ON:
                return self.is_dataset(inner, seen)
            case _:
                return self.is_dataset(value, seen)

    def _all(
        self, name: cst.Name, seen: frozenset[int], holds: Callable[[BoundValue, frozenset[int]], bool]
    ) -> bool:
        """Say whether a name has a source, and all of them are of a kind; ``d = d.map(f)`` says nothing new."""
        found = self.sources(name)
        rest = [source for source in found if id(source.value) not in seen]
        known = seen | {id(source.value) for source in found}
        direct = [source for source in rest if not self._starts_with(source.value, name.value)]
        return bool(found) and all(holds(source, known) for source in (direct or rest))

    def _starts_with(self, value: cst.BaseExpression, name: str) -> bool:
        """Say whether a chain of a dataset's methods starts with a name."""
        node = value
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if last_name(node.func) not in TRANSFORMATIONS | {"prefetch"}:
                return False
            node = node.func.value
        return isinstance(node, cst.Name) and node.value == name
