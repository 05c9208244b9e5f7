"""The edit that resizes images before their pixels are changed, where each line between gives an image again.

The recorded graphs have shown before which operations may follow the resize.
"""

from tfdoctor.edits.kit import *

RESIZES = ("resize", "resize_with_crop_or_pad", "resize_with_pad")

# Functions that give an image of the size that they take, and need no other.
CHANGES = re.compile(
    r"tensorflow\.(?:cast|clip_by_value|image\.(?:(?:stateless_)?random_(?:brightness|contrast|flip_\w+|hue|saturation)"
    r"|adjust_\w+|flip_\w+|per_image_standardization|rot90|transpose))"
)

ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


def earlier_resize(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Move the resize on a line before the line that the rule's example names."""
    why, values = "the first operation on full images has no known line", Values(module)
    first = int(known(re.search(r"# before line (\d+)", example), why)[1])
    found = [
        call
        for call in module.calls(*RESIZES, line=line)
        if _image(call) and values.from_tensorflow(call.func).startswith("tensorflow.image.")
    ]
    call = only(found, f"line {line} has {{}} of a name", "resize")
    function = known(module.nearest(call, cst.FunctionDef), "the resize is in no function of its own")
    within = module.covers(function, first)
    return _within(module, values, call, first) if within else _exchanged(module, values, function, first)


def _image(call: cst.Call) -> str:
    """Return the name of what a call takes first."""
    first = next(iter(positional(call)), None)
    return first.value if isinstance(first, cst.Name) else ""


def _within(module: SyntaxTree, values: Values, call: cst.Call, first: int) -> list[Splice]:
    """Move the resize up in its function."""
    line, above, _ = in_block(module, call)
    if line is None or len(line.body) != 1:
        raise Declined("the resize is no statement of a function's own")
    starts = [at for at, part in enumerate(above) if module.covers(part, first)]
    between, image = above[only(starts, f"line {first} is in another block than the resize") :], _image(call)
    _must_pass(module, values, between, image)
    fixed = {name.value for arg in call.args[1:] for name in module.inside(cst.Name, arg)}
    inside = (name for part in between for name in module.inside(cst.Name, part))
    if any(name.value in fixed and name in module.bound(name) for name in inside):
        raise Declined("the size of the resize is computed between the lines")
    lines, at, end = module.lines, module.span(between[0])[0], module.span(line)[1]
    moved = f"{image} = {module.written(call)}"
    if "\n" in moved or "#" in module.text[end : lines.end(end)]:
        raise Declined("the resize goes over several lines, or has a comment")
    put = insert(lines.start(at), f"{lines.indent(at)}{moved}{lines.newline}")
    match line.body[0]:
        case cst.Assign(targets=targets, value=value) if value is call:
            if module.written(targets[0].target) != image or len(targets) > 1:
                raise Declined("the resized image has another name")
            return [put, module.without(line)]
        case cst.Return():
            return [put, module.replaced(call, image)]
        case _:
            raise Declined("the resized image is changed in the same statement")


def _must_pass(module: SyntaxTree, values: Values, between: Sequence[cst.CSTNode], image: str) -> None:
    """Decline a statement that may need the full image, or gives it another name."""
    for part in between:
        if image not in {name.value for name in module.inside(cst.Name, part) if not is_label(module, name)}:
            continue
        match part:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]
            ) if name == image and _passes(values, value, image):
                continue
            case _:
                raise Declined(f"line {module.line(part)} may need the image at its full size")


def _passes(values: Values, value: cst.BaseExpression, image: str) -> bool:
    """Say whether an expression changes the pixels of an image, and needs no size."""
    match value:
        case cst.Name(value=name):
            return name == image
        case cst.Call(func=func, args=[cst.Arg(value=inner, keyword=None), *rest]):
            plain = all(_is_number(values, arg.value) for arg in rest)
            known = CHANGES.fullmatch(values.from_tensorflow(func)) is not None
            return known and plain and _passes(values, inner, image)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            sides = ((left, right), (right, left)) if isinstance(operator, ARITHMETIC) else ()
            return any(_passes(values, one, image) and _is_number(values, other) for one, other in sides)
        case _:
            return False


def _is_number(values: Values, value: cst.BaseExpression) -> bool:
    match value:
        case cst.BaseNumber():
            return True
        case cst.UnaryOperation(expression=inner):
            return _is_number(values, inner)
        case cst.Name():
            return not values.why_not_fixed(value)
        case _:
            return bool(values.from_tensorflow(value))


def _exchanged(module: SyntaxTree, values: Values, function: cst.FunctionDef, first: int) -> list[Splice]:
    """Exchange ``.map(change).map(resize)``, where the second function does nothing but resize."""
    taken = [parameter.name.value for parameter in function.params.params]
    changing = next((f for f in module.all(cst.FunctionDef) if module.covers(f, first)), None)
    if changing is None or len(changing.params.params) != len(taken):
        raise Declined(f"line {first} is in no function that is mapped like the resize")
    body = function.body.body if isinstance(function.body, cst.IndentedBlock) else ()
    inside = module.inside(cst.Call, function.body)
    calls = [call for call in inside if last_name(call.func) in RESIZES and _image(call) == taken[0]]
    names = [name for name in module.inside(cst.Name, function.body) if not is_label(module, name)]
    others = {name.value for name in names if not any(module.within(name, call) for call in calls)}
    few = 1 <= len(body) <= 2  # noqa: PLR2004 - the resize, and what is returned
    if not few or len(calls) != 1 or not others <= {*taken} or not _returns(body[-1], function, values):
        raise Declined(f"{function.name.value}() does more than resize the image")
    *lines, last = changing.body.body
    if not isinstance(changing.body, cst.IndentedBlock) or not isinstance(last, cst.SimpleStatementLine):
        raise Declined(f"{changing.name.value}() has other statements than assignments")
    _must_pass(module, values, lines, changing.params.params[0].name.value)
    if not _returns(last, changing, values):
        raise Declined(f"{changing.name.value}() returns other values than it takes")
    later = _mapped(module, function)
    earlier = receiver(later)
    if not isinstance(earlier, cst.Call) or earlier is not _mapped(module, changing):
        raise Declined("the two maps do not follow each other in one chain")
    return exchanged(module, earlier, later)


def _returns(line: cst.CSTNode, function: cst.FunctionDef, values: Values) -> bool:
    """Say whether a statement returns the parameters in their order; the first may be changed."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Return(value=value)]) if value is not None:
            parts = [element.value for element in value.elements] if isinstance(value, cst.Tuple) else [value]
        case _:
            return False
    names = [parameter.name.value for parameter in function.params.params]
    if len(parts) != len(names):
        return False
    first, *rest = parts
    resized = isinstance(first, cst.Call) and _image(first) == names[0]
    kept = [part.value for part in rest if isinstance(part, cst.Name)]
    return kept == names[1:] and (resized or _passes(values, first, names[0]))


def _mapped(module: SyntaxTree, function: cst.FunctionDef) -> cst.Call:
    """Return the only call of map() with a function, which is used for nothing else."""
    name = function.name
    uses = [used for used in module.all(cst.Name) if used.value == name.value and used is not name]
    argument = module.parent(uses[0]) if len(uses) == 1 else None
    call = module.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or method_of(call) != "map":
        raise Declined(f"{name.value}() is not mapped exactly once")
    return call


EDITS = {"earlier-resize": earlier_resize}
