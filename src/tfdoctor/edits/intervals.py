"""The edit that logs every 100 steps instead of at each one, where a step needs nothing of what is logged."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, dotted, last_name
from tfdoctor.edits.names import is_label
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values

STEPS = 100  # As in the examples of the rules

# Functions and methods that only write what they get: print, logging, tf.summary, tqdm, files.
LOGS = frozenset(
    ["critical", "debug", "error", "flush", "histogram", "image", "info", "print", "scalar", "set_description",
     "set_postfix", "set_postfix_str", "text", "warning", "write"]
)  # fmt: skip

# Functions and methods without an effect.
READS = frozenset(
    ["abs", "dict", "enumerate", "float", "format", "int", "item", "items", "join", "len", "list", "max", "mean",
     "min", "norm", "numpy", "perf_counter", "range", "result", "round", "std", "str", "sum", "time", "tolist",
     "tuple", "values", "zip"]
)  # fmt: skip

# Functions to which a history may be given after training, besides those of LOGS.
SHOWS = frozenset(["dump", "dumps", "len", "plot", "savefig", "savetxt"])

_READ_ONLY_MODULES = frozenset(["numpy", "math", "time"])


def every_hundred_steps(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Guard the statement on a line, and those that share values with it, by the number of the step."""
    statement, loop = _statement(module, line)
    guarded = _Logging(module, loop)
    if (number := _interval(module, statement, loop)) is not None:
        guarded.must_only_log([statement])
        if int(module.written(number)) >= STEPS:
            raise Declined(f"the line runs only every {module.written(number)} steps already")
        return [module.replaced(number, str(STEPS))]
    counter = _counter(module, loop)
    group = guarded.group(statement)
    guarded.must_only_log(group)
    runs = groupby(guarded.body, key=lambda part: part in group)  # what stands together in the body
    together = [list(run) for inside, run in runs if inside]
    return [splice for run in together for splice in _guarded(module, run, counter)]


def _statement(module: SyntaxTree, line: int) -> tuple[cst.BaseStatement, cst.For]:
    """Return the loop over steps around a line, and the statement of its body that has the line."""
    loops = [loop for loop in module.all(cst.For) if module.covers(loop.body, line)]
    if not loops:
        raise Declined("no for loop is around the line")
    found = [(part, loop) for loop in loops for part in _body(loop) if module.covers(part, line)]
    # A loop over variables or metrics within a step is part of what is logged.
    logging = [(part, loop) for part, loop in found if _Logging(module, loop).logs(part)]
    return (logging or found[-1:])[0]


def _body(loop: cst.For) -> list[cst.BaseStatement]:
    return [part for part in loop.body.body if isinstance(part, cst.BaseStatement)]


def _counter(module: SyntaxTree, loop: cst.For) -> str:
    """Return the name that counts the turns of a loop from its header.

    Raises:
        Declined: no name does, or the body assigns it.
    """
    through = loop.iter
    called = last_name(through.func) if isinstance(through, cst.Call) else ""
    name: cst.BaseExpression | None = None
    if called == "enumerate" and isinstance(loop.target, cst.Tuple):
        name = loop.target.elements[0].value
    elif called in ("range", "trange"):
        name = loop.target
    if not isinstance(name, cst.Name) or name.value == "_":
        raise Declined("the loop has no number of the step: use enumerate()")
    bound = [node for node in module.bound(name) if module.within(node, loop.body)]
    augmented = [node for node in module.all(cst.AugAssign) if module.written(node.target) == name.value]
    if bound or augmented:
        raise Declined(f"`{name.value}` is not only the number of the step")
    return name.value


class _Logging:
    """Which statements of a loop's body only log."""

    def __init__(self, module: SyntaxTree, loop: cst.For) -> None:
        self.module, self.loop = module, loop
        self.body = _body(loop)

    def group(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        """Return a statement with those that read its names, and those that only it and they read."""
        group = {statement}
        while True:
            names = {name for part in group for name in self._binds(part)}
            readers = {part for part in self.body if self._reads(part) & names}
            makers = {
                part
                for part in self.body
                if (own := self._binds(part))
                and self.logs(part)
                and all(it in group or it is part for it in self.body if self._reads(it) & own)
            }
            if readers | makers <= group:
                return [part for part in self.body if part in group]
            group |= readers | makers

    def must_only_log(self, group: Iterable[cst.BaseStatement]) -> None:
        """Decline a statement with another effect, or a value that is read outside of the group."""
        group = list(group)
        for part in group:
            if not self.logs(part):
                line = self.module.line(part)
                raise Declined(f"line {line} does more than log, so the next steps may need it")
        names = {name for part in group for name in self._binds(part)}
        for name in self.module.all(cst.Name):
            inside = any(self.module.within(name, part) for part in group)
            if name.value in names and not inside and not is_label(self.module, name):
                raise Declined(
                    f"line {self.module.line(name)} reads `{name.value}`, which would be missing in most steps"
                )
        calls = [call for part in group for call in self.module.inside(cst.Call, part)]
        appends = [call for call in calls if last_name(call.func) == "append"]
        for history in {dotted(call.func).rpartition(".")[0] for call in appends}:
            self._must_be_shown(history, group)

    def _must_be_shown(self, history: str, group: list[cst.BaseStatement]) -> None:
        """Decline a list of logged values that is used for more than showing it."""
        for name in self.module.all(cst.Name):
            inside = any(self.module.within(name, part) for part in group)
            target = isinstance(self.module.parent(name), cst.AssignTarget)
            if name.value != history or inside or target or is_label(self.module, name):
                continue
            calls = self.module.around(name, cst.Call)
            if not any(last_name(call.func) in LOGS | SHOWS for call in calls):
                raise Declined(f"line {self.module.line(name)} uses `{history}`, which would be shorter")

    def _binds(self, part: cst.BaseStatement) -> set[str]:
        """Return the names that a statement assigns."""
        names = self.module.inside(cst.Name, part)
        return {name.value for name in names if name in self.module.bound(name)}

    def _reads(self, part: cst.BaseStatement) -> set[str]:
        names = self.module.inside(cst.Name, part)
        read = (name for name in names if not is_label(self.module, name))
        return {name.value for name in read if name not in self.module.bound(name)}

    def logs(self, node: cst.CSTNode) -> bool:  # noqa: PLR0911 - one return a kind of statement
        """Say whether a statement only computes values without effects and writes them."""
        match node:
            case cst.SimpleStatementLine(body=parts):
                return all(self.logs(part) for part in parts)
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="append"))) as call
            ):
                return self._is_pure(call)
            case cst.Expr(value=cst.Call() as call):
                return last_name(call.func) in LOGS and self._is_pure(call)
            case cst.Assign(targets=targets, value=value):
                return all(self._own_target(target.target, node) for target in targets) and self._is_pure(value)
            case cst.If(test=test, body=body, orelse=None):
                return self._is_pure(test) and self.logs(body)
            case cst.For(iter=through, body=body, orelse=None):
                return self._is_pure(through) and self.logs(body)
            case cst.With(items=[cst.WithItem(item=cst.Call(func=func))], body=body):
                return last_name(func) == "as_default" and self.logs(body)
            case cst.IndentedBlock(body=body):
                return all(self.logs(part) for part in body)
            case _:
                return False

    def _own_target(self, target: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Say whether a target is a name, or an item of a dictionary that the same statement of the body makes."""
        match target:
            case cst.Name():
                return True
            case cst.Subscript(value=cst.Name() as made):
                part = next(part for part in self.body if self.module.within(node, part))
                return made.value in self._binds(part)
            case _:
                return False

    def _is_pure(self, value: cst.BaseExpression) -> bool:
        """Say whether all calls in an expression are known to have no effect but writing."""
        inside = self.module.inside(cst.Call, value)
        if any(arg.keyword and arg.keyword.value == "out" for call in inside for arg in call.args):
            return False
        odd = (cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda)
        if any(self.module.inside(kind, value) for kind in odd):
            return False
        return all(self._has_no_effect(call, value) for call in inside)

    def _has_no_effect(self, call: cst.Call, statement: cst.BaseExpression) -> bool:
        name, first = last_name(call.func), dotted(call.func).partition(".")[0]
        if call is statement and (name in LOGS or name == "append"):
            return True
        origins = self.module.imports.get(first, set())
        if origins and {origin.partition(".")[0] for origin in origins} <= _READ_ONLY_MODULES:
            return ".random" not in dotted(call.func)
        if any(origin.partition(".")[0] == "tensorflow" for origin in origins):
            return name.startswith(("reduce_", "norm", "cast", "sqrt")) or name == "global_norm"
        own = isinstance(call.func, cst.Name) and self.module.bound(call.func)
        return name in READS and not own


def _interval(module: SyntaxTree, statement: cst.BaseStatement, loop: cst.For) -> cst.BaseExpression | None:
    """Return the number N of a statement ``if step % N == 0:``, as the literal to change; None for others."""
    match statement:
        case cst.If(
            test=cst.Comparison(
                left=cst.BinaryOperation(left=cst.Name(value=name), operator=cst.Modulo(), right=number),
                comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer(value="0"))],
            ),
            orelse=None,
        ) if name == _counter(module, loop):
            return _literal(module, number)
        case _:
            return None


def _literal(module: SyntaxTree, number: cst.BaseExpression) -> cst.Integer:
    """Return the written number, also of a constant that has no other use."""
    if isinstance(number, cst.Name):
        sources = Values(module).sources(number)
        uses = [name for name in module.all(cst.Name) if name.value == number.value]
        if len(sources) != 1 or len(uses) != 2 or Values(module).why_not_fixed(number):  # noqa: PLR2004
            raise Declined(f"`{number.value}` is used elsewhere")
        number = sources[0].value
    if not isinstance(number, cst.Integer):
        raise Declined("the interval between two logged steps is not a written number")
    return number


def _guarded(module: SyntaxTree, run: list[cst.BaseStatement], counter: str) -> Iterator[Splice]:
    """Indent statements that stand together under a condition."""
    start, end = module.span(run[0])[0], module.span(run[-1])[1]
    texts = [*module.all(cst.SimpleString), *module.all(cst.FormattedString)]
    inside = (text for text in texts if any(module.within(text, part) for part in run))
    if any("\n" in module.written(text) for text in inside):
        raise Declined("a text in the statement goes over several lines")
    lines = module.lines
    first, last = lines.number(start), lines.number(max(start, end - 1))
    if lines.start(start) + len(lines.indent(start)) != start:
        raise Declined("the statement does not begin its line")
    unit = "\t" if lines.indent(start).startswith("\t") else "    "
    condition = f"{lines.indent(start)}if {counter} % {STEPS} == 0:{lines.newline}"
    yield insert(lines.start(start), condition)
    for number in range(first, last + 1):
        at = lines.starts[number - 1]
        if module.text[at : lines.end(at)].strip():
            yield insert(at, unit, rank=1)
