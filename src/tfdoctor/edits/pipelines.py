"""Edits of tf.data pipelines."""

import re
from collections.abc import Iterable

import libcst as cst

from tfdoctor.edits.arguments import setting
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.uses import must_only_train
from tfdoctor.recording.program import ProgramRecord

TRANSFORMATIONS = frozenset(
    [
        "apply",
        "batch",
        "bucket_by_sequence_length",
        "cache",
        "concatenate",
        "enumerate",
        "filter",
        "flat_map",
        "group_by_window",
        "ignore_errors",
        "interleave",
        "map",
        "padded_batch",
        "ragged_batch",
        "rebatch",
        "repeat",
        "scan",
        "shard",
        "shuffle",
        "skip",
        "sparse_batch",
        "take",
        "take_while",
        "unbatch",
        "unique",
        "window",
        "with_options",
    ]
)
"""Methods of tf.data.Dataset that return a dataset, but for prefetch."""

MAKERS = frozenset(
    [
        "choose_from_datasets",
        "from_generator",
        "from_tensor_slices",
        "from_tensors",
        "list_files",
        "load",
        "random",
        "range",
        "sample_from_datasets",
        "zip",
    ]
)
"""Static methods of tf.data.Dataset that return one."""

RANDOM = frozenset(["shuffle", "random", "sample_from_datasets", "rejection_resample"])
"""Behind these the elements are others in each epoch: a cache would freeze them."""

AUTOTUNE = "tensorflow.data.AUTOTUNE"

_KEEPS_ORDER = ("deterministic", "experimental_deterministic")
_ORDER = "the examples would come in another order, for the pipeline is told not to keep it"


def prefetch(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Append ``.prefetch(tf.data.AUTOTUNE)`` to the pipeline whose last stage is written on a line."""
    call = _whole_chain(module, line)
    if "prefetch" in _methods(call):
        raise Declined("the pipeline has a prefetch in the middle, which had better be moved")
    return [_appended(module, call, f".prefetch({_autotune(module, call)})", rank=1)]


def must_keep_order(program: ProgramRecord, _: str) -> None:
    """Decline parallel calls where the recorded options let them change the order of the examples."""
    given = [dataset.options or {} for dataset in program.datasets]
    if any(one.get(name) is False for one in given for name in _KEEPS_ORDER):
        raise Declined(_ORDER)


def parallel(method: str, position: int) -> "ArgumentEdit":
    """Return the edit that gives a method ``num_parallel_calls``."""
    return ArgumentEdit(method, "num_parallel_calls", "", ("None",), position)


class ArgumentEdit:
    """An edit that gives one argument to the call of a method on a line."""

    def __init__(
        self, method: str, argument: str, value: str, instead_of: tuple[str, ...], position: int
    ) -> None:
        self.method, self.argument, self.value = method, argument, value
        self.instead_of, self.position = instead_of, position

    def __call__(self, module: SyntaxTree, line: int, _: str) -> list[Splice]:
        """Return the splices; a value of "" is AUTOTUNE by the file's own name."""
        call = _one(module, line, {self.method})
        if re.search(r"deterministic\s*=\s*(?!True\b|None\b)", module.text):
            raise Declined(_ORDER)
        value = self.value or _autotune(module, call)
        return [
            setting(
                module,
                call,
                self.argument,
                value,
                instead_of=self.instead_of,
                position=self.position,
            )
        ]


def drop_remainder(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``drop_remainder=True`` to the batch() on a line, of a dataset that is only trained on."""
    call = _one(module, line, {"batch"})
    must_only_train(module, call)
    return [setting(module, call, "drop_remainder", "True", instead_of=(), position=1)]


def cache(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Insert ``.cache()`` right after the stage that is written on a line."""
    call = _one(module, line, TRANSFORMATIONS | MAKERS)
    before = set(_methods(call))
    for earlier in _assigned(module, call):
        before |= set(_methods(earlier))
    if before & (RANDOM | {"repeat", "cache"}):
        raise Declined("what comes before is random, repeated or cached already")
    if any("random" in module.written(each) for each in _mapped(module, call)):
        raise Declined("a function that comes before uses random numbers")
    return [_appended(module, call, ".cache()")]


def _assigned(module: SyntaxTree, call: cst.Call) -> list[cst.Call]:
    """Return what the dataset that a chain begins with was given, above it in the file."""
    above = [
        each for each in module.all(cst.Assign) if module.span(each.value) <= module.span(call)
    ]
    names, found = [module.written(_root(call))], list[cst.Call]()
    for name in names:  # grows by the names that a dataset had before
        for each in above:
            if module.written(each.targets[0].target) != name:
                continue
            found += [each.value] if isinstance(each.value, cst.Call) else []
            earlier = module.written(_root(each.value))
            names += [earlier] if earlier not in names else []
    return found


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a chain of methods begins with."""
    while isinstance(node, cst.Call | cst.Attribute):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node


def _mapped(module: SyntaxTree, call: cst.Call) -> list[cst.CSTNode]:
    """Return the chains before a call, and the functions of the file that they name."""
    chains = [call, *_assigned(module, call)]
    names = {
        each.value for each in module.all(cst.Name) if any(_within(module, each, c) for c in chains)
    }
    functions = [each for each in module.all(cst.FunctionDef) if each.name.value in names]
    return [*chains, *functions]


def _within(module: SyntaxTree, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
    (start, end), (first, last) = module.span(node), module.span(outer)
    return first <= start and end <= last


def _one(module: SyntaxTree, line: int, methods: Iterable[str]) -> cst.Call:
    """Return the only call of such a method on a line.

    Python 3.10 and older tell the line on which the whole expression begins.
    """
    _must_be_known(line)
    wanted = set(methods)
    calls = [call for call in module.all(cst.Call) if _method(call) in wanted]
    found = [call for call in calls if _line(module, call) == line]
    found = found or [call for call in calls if module.covers(call, line)]
    if len(found) != 1:
        where = f"line {line}"
        named = f".{next(iter(wanted))}()" if len(wanted) == 1 else "a transformation"
        many = "several calls" if found else "no call"
        raise Declined(f"{where} has {many} of {named}")
    return found[0]


def _must_be_known(line: int) -> None:
    """Decline an unknown line (0): a file has pipelines that do not train."""
    if not line:
        raise Declined("the line of the pipeline is not known")


def _whole_chain(module: SyntaxTree, line: int) -> cst.Call:
    """Return the last call of the chain of transformations that goes through a line."""
    _must_be_known(line)
    starts = [call for call in module.all(cst.Call) if _method(call) in TRANSFORMATIONS | MAKERS]
    here = [call for call in starts if _line(module, call) == line]
    here = here or [call for call in starts if module.covers(call, line)]
    ends = {_end(module, call) for call in here}
    outer = [one for one in ends if not any(_inside(module, one, other) for other in ends)]
    if len(outer) != 1:
        raise Declined(f"line {line} has {'several pipelines' if outer else 'no transformation'}")
    return outer[0]


def _end(module: SyntaxTree, call: cst.Call) -> cst.Call:
    """Return the last transformation of a chain."""
    while True:
        method = module.parent(call)
        outer = module.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(outer, cst.Call) or outer.func is not method:
            return call
        if _method(outer) not in TRANSFORMATIONS | {"prefetch"}:
            return call
        call = outer


def _inside(module: SyntaxTree, call: cst.Call, other: cst.Call) -> bool:
    return call is not other and any(each is other for each in module.around(call, cst.Call))


def _method(call: cst.CSTNode | None) -> str:
    """Return the name of the method that is called; a maker counts only after ``Dataset.``."""
    match call:
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=name))):
            made = name in MAKERS and last_name(value) != "Dataset"
            return "" if made else name
        case _:
            return ""


def _line(module: SyntaxTree, call: cst.Call) -> int:
    """Return the line of the method's name: what Python 3.11 tells of a call in a chain."""
    return module.line(call.func.attr if isinstance(call.func, cst.Attribute) else call)


def _methods(call: cst.Call) -> list[str]:
    """Return the methods of the chain before a call, and its own."""
    found: list[str] = []
    node: cst.BaseExpression = call
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        found.append(last_name(node.func))
        node = node.func.value
    return found


def _autotune(module: SyntaxTree, node: cst.CSTNode) -> str:
    name = module.name_of(AUTOTUNE, node)
    if name is None:
        raise Declined("the file has no name of its own for tensorflow there")
    return name


def _appended(module: SyntaxTree, call: cst.Call, new: str, rank: int = 0) -> Splice:
    """Append a method to a call: on a line of its own where each of the chain has one."""
    end, lines = module.span(call)[1], module.lines
    if not isinstance(call.func, cst.Attribute):
        raise Declined("it is not a method that is called")
    dot = module.span(call.func.attr)[0]
    head = module.text[lines.start(dot) : dot].rstrip()
    rest = module.text[end : lines.end(end)].strip()
    above = module.text[: lines.start(dot)].rstrip("\r\n").endswith("\\")
    if head.strip() != "." or above:
        return insert(end, new, rank)
    at = lines.end(end) if not rest or rest.startswith("#") else end
    return insert(at, f"{lines.newline}{lines.indent(dot)}{new}", rank)
