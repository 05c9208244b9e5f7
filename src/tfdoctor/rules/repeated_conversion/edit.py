"""The edit that converts arrays to tensors once, before the loop."""

from collections.abc import Collection
from itertools import takewhile

from tfdoctor.edits.kit import *


def convert_once(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Convert the arguments that the rule's example names before the loop, under new names.

    The arrays keep their names, so that all other code sees what it saw. Declines where the loop, or a function
    that it may call, could change an array, and where an argument is no plain name.
    """
    # A line of the example: the argument's place and the type to convert to, "" for its own.
    places = dict(re.findall(r"^array_(\w+) = tf\.constant\(\w+(?:, tf\.(\w+))?\)", example, re.MULTILINE))
    if not places:
        raise Declined("the finding does not name the arguments")
    if "input_signature" in module.text:
        raise Declined("an input_signature in the file may ask for another type")
    found = [(call, given) for call in module.on(cst.Call, line) if (given := _given(call, places))]
    call, given = only(found, "the arguments on the line are not all plain names")
    names = dict.fromkeys(name.value for name in given.values())
    loop = _loop(module, call, {*names}.union(*(_parts(module, name) for name in names)))
    tensors = {name: unused_name(module, f"{name}_tensor") for name in names}
    constant = module.imported("tensorflow.constant", loop, "the loop")
    lines, begin = module.lines, module.span(loop)[0]
    written = []
    for name, new in tensors.items():
        values = {
            place: f", {module.imported(f'tensorflow.{places[place]}', loop, 'the loop')}" if places[place] else ""
            for place in places
            if given[place].value == name
        }
        arguments = [module.parent(given[place]) for place in values]
        if all(isinstance(one, cst.Arg) and one.star == "*" for one in arguments):  # some places of a tuple
            if not all(place.isdecimal() for place in values):
                raise Declined("an array within a structure has to be converted by hand")
            count = 1 + max(map(int, values))
            taken = [(f"{name}[{at}]", values.get(str(at))) for at in range(count)]
            items = [part if dtype is None else f"{constant}({part}{dtype})" for part, dtype in taken]
            items += [] if _parts(module, name, count) else [f"*{name}[{count}:]"]
            tensor = f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"
        elif len(set(values.values())) > 1:
            raise Declined(f"`{name}` is needed as two types")
        else:
            tensor = f"{constant}({name}{next(iter(values.values()))})"
        written.append(f"{lines.indent(begin)}{new} = {tensor}{lines.newline}")
    uses = (module.replaced(name, tensors[name.value]) for name in set(given.values()))
    return [insert(lines.start(begin), "".join(written)), *uses]


def _given(call: cst.Call, places: Collection[str]) -> dict[str, cst.Name]:
    """Return the names at some places among a call's arguments; {} where one has no name."""
    names: dict[str, cst.Name] = {}
    for position, argument in enumerate(call.args):
        if not isinstance(argument.value, cst.Name):
            continue
        if argument.star == "*" and len(call.args) == 1:  # it stands for all places
            return dict.fromkeys(places, argument.value)
        if argument.star:
            return {}
        names[argument.keyword.value if argument.keyword else str(position)] = argument.value
    return {place: names[place] for place in places} if names.keys() >= {*places} else {}


def _loop(module: SyntaxTree, call: cst.Call, names: set[str]) -> Loop:
    """Return the outermost loop around a call, in the same function, that does not use the names otherwise.

    Raises:
        Declined: there is none, or a function of the file uses an array that is not its own, and may change it.
    """

    def harmless(loop: Loop) -> bool:
        """Say whether no use can change an array: an argument of the call, a keyword, len(x), x.shape."""
        for name in module.inside(cst.Name, loop):
            parent = module.parent(name)
            around = module.parent(parent) if isinstance(parent, cst.Arg) else None
            label = is_label(module, name)
            read = isinstance(parent, cst.Attribute) and last_name(parent) in {"shape", "dtype", "size", "ndim"}
            measured = isinstance(around, cst.Call) and last_name(around.func) == "len"
            if name.value in names and not (label or read or measured or around is call):
                return False
        return True

    outward = module.outward(call, cst.FunctionDef, cst.Lambda, cst.BaseComp)
    loops = [outer for outer in outward if isinstance(outer, cst.For | cst.While)]
    if not loops:
        raise Declined("no loop is around the line, in the same function")
    chosen = [*takewhile(harmless, loops)]
    if not chosen:
        raise Declined("the loop around the line uses the arrays in other ways, which may change them")
    for name in (name for name in module.all(cst.Name) if name.value in names):
        function = module.nearest(name, cst.FunctionDef)
        if function in {None, module.nearest(call, cst.FunctionDef)} or function is None:
            continue
        label = isinstance(module.parent(name), cst.Param) or is_label(module, name)
        if not label and name.value not in {parameter.name.value for parameter in function.params.params}:
            raise Declined(f"a function of the file uses `{name.value}`, and may change it")
    return chosen[-1]


def _parts(module: SyntaxTree, name: str, count: int | None = None) -> list[str]:
    """Return the names in the only tuple that is assigned to a name, if it has ``count`` elements."""
    made = [
        node.value
        for node in module.all(cst.Assign)
        if any(module.written(target.target) == name for target in node.targets)
    ]
    if (
        len(made) != 1
        or not isinstance(made[0], cst.Tuple | cst.List)
        or count not in {None, len(made[0].elements)}
    ):
        return []
    return [element.value.value for element in made[0].elements if isinstance(element.value, cst.Name)]


EDITS = {"convert-once": convert_once}
