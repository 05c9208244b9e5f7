"""The edit that converts arrays to tensors once, before the loop."""

import re
from collections.abc import Iterable, Mapping

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.names import is_label, unused_name
from tfdoctor.edits.splice import Declined, Splice, insert

# A line of the rule's example: the argument's place and the type to convert to, "" for its own.
_ARRAY = re.compile(r"^array_(\w+) = tf\.constant\(\w+(?:, tf\.(\w+))?\)", re.MULTILINE)


def convert_once(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Convert the arguments that the rule's example names before the loop, under new names.

    The arrays keep their names, so that all other code sees what it saw. Declines where the loop, or a function
    that it may call, could change an array, and where an argument is no plain name.
    """
    if not (places := dict(_ARRAY.findall(example))):
        raise Declined("the finding does not name the arguments")
    if "input_signature" in module.text:
        raise Declined("an input_signature in the file may ask for another type")
    covering = [call for call in module.all(cst.Call) if module.covers(call, line)]
    found = [(call, given) for call in covering if (given := _given(call, places)) is not None]
    if len(found) != 1:
        raise Declined("the arguments on the line are not all plain names")
    call, given = found[0]
    names = {name.value for name in given.values()}
    held = names.union(*(_parts(module, name) for name in names))
    loop = _loop(module, call, held)
    _must_stay(module, loop, held)
    tensors = {name: unused_name(module, f"{name}_tensor") for name in names}
    constant, lines = module.name_of("tensorflow.constant", loop), module.lines
    if constant is None:
        raise Declined("no clear import of tensorflow precedes the loop")
    written = []
    for name, new in tensors.items():
        own = [place for place in places if given[place].value == name]
        values = {place: _dtype(module, places[place], loop) for place in own}
        arguments = (module.parent(given[place]) for place in own)
        if all(isinstance(one, cst.Arg) and one.star == "*" for one in arguments):
            tensor = _tuple(module, name, values, constant)
        elif len(set(values.values())) > 1:
            raise Declined(f"`{name}` is needed as two types")
        else:
            tensor = f"{constant}({name}{values[own[0]]})"
        written.append(f"{lines.indent(module.span(loop)[0])}{new} = {tensor}{lines.newline}")
    uses = (Splice(*module.span(name), 0, tensors[name.value]) for name in set(given.values()))
    return [insert(lines.start(module.span(loop)[0]), "".join(written)), *uses]


def _given(call: cst.Call, places: Iterable[str]) -> Mapping[str, cst.Name] | None:
    """Return the names at some places among a call's arguments; None where one has no name.

    `*inputs` alone stands for all places.
    """
    names: dict[str, cst.Name] = {}
    for position, argument in enumerate(call.args):
        if not isinstance(argument.value, cst.Name):
            continue
        if argument.star == "*" and len(call.args) == 1:
            return dict.fromkeys(places, argument.value)
        if argument.star:
            return None
        names[argument.keyword.value if argument.keyword else str(position)] = argument.value
    return {place: names[place] for place in places} if set(places) <= set(names) else None


def _loop(module: SyntaxTree, call: cst.Call, names: set[str]) -> cst.For | cst.While:
    """Return the outermost loop around a call, in the same function, that does not use the names otherwise."""
    loops: list[cst.For | cst.While] = []
    outer = module.parent(call)
    while outer is not None and not isinstance(outer, cst.FunctionDef | cst.Lambda | cst.BaseComp):
        if isinstance(outer, cst.For | cst.While):
            loops.append(outer)
        outer = module.parent(outer)
    if not loops:
        raise Declined("no loop is around the line, in the same function")
    chosen = None
    for loop in loops:
        inside = (node for node in module.all(cst.Name) if node.value in names and module.within(node, loop))
        if not all(_harmless(module, node, call) for node in inside):
            break
        chosen = loop
    if chosen is None:
        raise Declined("the loop around the line uses the arrays in other ways, which may change them")
    return chosen


def _harmless(module: SyntaxTree, name: cst.Name, call: cst.Call) -> bool:
    """Say whether a use of a name cannot change the array: an argument of the call, a keyword, len(x), x.shape."""
    parent = module.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.attr is name or last_name(parent) in {"shape", "dtype", "size", "ndim"}
    around = module.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(parent, cst.Arg) or around is call or parent.keyword is name:
        return isinstance(parent, cst.Arg)
    return isinstance(around, cst.Call) and last_name(around.func) == "len"


def _must_stay(module: SyntaxTree, loop: cst.For | cst.While, names: set[str]) -> None:
    """Decline where a function of the file uses an array that is not its own, and may change it."""
    home = next(module.around(loop, cst.FunctionDef), None)
    for node in module.all(cst.Name):
        function = next(module.around(node, cst.FunctionDef), None)
        if node.value not in names or function in {None, home} or function is None:
            continue
        own = {parameter.name.value for parameter in function.params.params}
        label = isinstance(module.parent(node), cst.Param) or is_label(module, node)
        if node.value not in own and not label:
            raise Declined(f"a function of the file uses `{node.value}`, and may change it")


def _dtype(module: SyntaxTree, dtype: str, node: cst.CSTNode) -> str:
    """Return the second argument of tf.constant, "" for the array's own type."""
    name = module.name_of(f"tensorflow.{dtype}", node) if dtype else ""
    if name is None:
        raise Declined("no clear import of tensorflow precedes the loop")
    return f", {name}" if name else ""


def _tuple(module: SyntaxTree, name: str, dtypes: Mapping[str, str], constant: str) -> str:
    """Return a tuple in which some places of a tuple are converted."""
    if not all(place.isdecimal() for place in dtypes):
        raise Declined("an array within a structure has to be converted by hand")
    count = 1 + max(map(int, dtypes))
    taken = [(f"{name}[{at}]", dtypes.get(str(at))) for at in range(count)]
    items = [part if dtype is None else f"{constant}({part}{dtype})" for part, dtype in taken]
    items += [] if _parts(module, name, count) else [f"*{name}[{count}:]"]
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"


def _parts(module: SyntaxTree, name: str, count: int | None = None) -> list[str]:
    """Return the names in the only tuple that is assigned to a name, if it has ``count`` elements."""
    made = [
        assignment.value
        for assignment in module.all(cst.Assign)
        if any(module.written(target.target) == name for target in assignment.targets)
    ]
    if len(made) != 1 or not isinstance(made[0], cst.Tuple | cst.List):
        return []
    elements = [element.value for element in made[0].elements]
    fit = count in {None, len(elements)}
    return [element.value for element in elements if isinstance(element, cst.Name)] if fit else []


EDITS: dict[str, Kind] = {"convert-once": convert_once}
