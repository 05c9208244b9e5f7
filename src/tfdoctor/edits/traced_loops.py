"""Loops and conditions of a function in a graph: none may depend on the value of a tensor."""

import libcst as cst

from tfdoctor.edits.graph_calls import LISTS
from tfdoctor.edits.module import last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.traced_objects import TracedObjects


class TracedLoops(TracedObjects):
    """Loops and conditions that a graph decides once, when it is traced."""

    def _iterates(self, through: cst.BaseExpression) -> None:
        """Decline a loop over what may be a tensor."""
        match through:
            case cst.Call(func=cst.Name(value="range"), args=args):
                if not all(self._is_number(argument.value) for argument in args):
                    raise Declined(f"{self._at(through)} loops as often as a value says")
            case cst.Call(func=cst.Name(value="zip" | "enumerate" | "reversed" | "list"), args=args):
                for argument in args:
                    self._iterates(argument.value)
            case cst.Attribute() if last_name(through).endswith(LISTS):
                return
            case cst.Attribute(value=cst.Name(value="self")) if self._is_own_list(through):
                return
            case cst.List() | cst.Tuple() | cst.ListComp():
                return
            case cst.Name() if self._is_list(through):
                return
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="gradient" | "items" | "values"))):
                return
            case cst.BinaryOperation(left=left, right=right):
                self._iterates(left)
                self._iterates(right)
            case _:
                raise Declined(f"{self._at(through)} loops over what may be a tensor")

    def _is_number(self, value: cst.BaseExpression) -> bool:
        """Say whether an expression is a Python number that does not change."""
        own = isinstance(value, cst.Attribute) and self.module.written(value.value) == "self"
        fixed = isinstance(value, cst.Name) and not self.values.why_not_fixed(value)
        return isinstance(value, cst.Integer) or own or fixed

    def _is_own_list(self, node: cst.Attribute) -> bool:
        function = self.module.nearest(node, cst.FunctionDef)
        made = self._made(node, function) if function else []
        return bool(made) and all(isinstance(v, cst.List | cst.Tuple | cst.ListComp) for v in made)

    def _is_list(self, name: cst.Name) -> bool:
        """Say whether a name stands for a list of variables, gradients or constants."""
        sources = self.values.sources(name)
        return bool(sources) and all(
            not source.each and self._holds_list(source.value, source.place) for source in sources
        )

    def _holds_list(self, value: cst.BaseExpression, place: int) -> bool:
        match value:
            case cst.Call(func=func):
                name = last_name(func)
                return name == "gradient" or (name == "clip_by_global_norm" and place == 0)
            case cst.List() | cst.Tuple() | cst.ListComp():
                return place < 0
            case cst.Attribute():
                return last_name(value).endswith(LISTS)
            case cst.BinaryOperation(left=left, right=right):
                return self._holds_list(left, place) and self._holds_list(right, place)
            case _:
                return False

    def _condition(self, test: cst.BaseExpression) -> None:
        """Decline a condition that may be a tensor: left are training, `x is None` and constants."""
        match test:
            case cst.Name(value="training" | "True" | "False"):
                return
            case cst.Comparison(
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))
                ]
            ):
                return
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                self._condition(inner)
            case cst.BooleanOperation(left=left, right=right):
                self._condition(left)
                self._condition(right)
            case _:
                raise Declined(f"{self._at(test)} decides by what may be the value of a tensor")
