"""Where a script first uses a package that it imports: before its training is over, later, or nowhere."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tfdoctor.source_code.syntax import Function
from tfdoctor.source_code.tree import Scope, SyntaxTree


class LateUse:
    """What runs of a script until the lines that train are over, and what runs at all, as far as names tell.

    A function runs where code that runs has its name, or that of a class around it; decorated ones always do.
    """

    def __init__(self, tree: SyntaxTree, trains: Iterable[int]) -> None:
        self.tree = tree
        self.over = dict[Scope, int]()  # the last line of a scope that is no later than the training
        self.nodes, self.mentions = defaultdict[Scope, list[ast.AST]](list), defaultdict[str, list[ast.AST]](list)
        for node in tree.nodes:
            self.nodes[self._runs_in(node)].append(node)
            self.mentions[_name(node)].append(node)
        for line in trains:
            self._train(line)
        self.early, self.runs = self._run(self.over), self._run({})

    def _runs_in(self, node: ast.AST) -> Scope:
        scope = self.tree.scope_of(node)
        while isinstance(scope, ast.ClassDef | ast.Lambda):  # a lambda may be called at once
            scope = self.tree.scope_of(scope)
        return scope

    def _train(self, line: int) -> None:
        """Note until where the scope of a line that trains runs, and those of all mentions of its function."""
        scope = self.tree.scope_at(line)
        own = (node for node in ast.iter_child_nodes(scope) if isinstance(node, ast.stmt))
        end = max((node.end_lineno or 0 for node in own if self.tree.covers(node, line)), default=line)
        if end > self.over.get(scope, 0):
            self.over[scope] = end
            for node in self.mentions[scope.name] if isinstance(scope, Function) else ():
                self._train(getattr(node, "lineno", 0))

    def _run(self, until: Mapping[Scope, int]) -> set[ast.AST]:
        """Return the nodes that run, of some scopes those until a line."""
        called = defaultdict[str, list[Scope]](list)
        for function in self.tree.functions:
            around = (one.name for one in self.tree.outward(function) if isinstance(one, ast.ClassDef))
            for name in (function.name, *around):
                called[name].append(function)
        ahead, run = list[Scope](one for one in self.tree.functions if one.decorator_list), set[ast.AST]()
        ahead.append(self.tree.tree)
        while ahead:
            scope = ahead.pop()
            end = until.get(scope, len(self.tree.lines.starts))
            own = {node for node in self.nodes[scope] if getattr(node, "lineno", 0) <= end} - run
            run |= own
            ahead += [function for node in own for function in called.get(_name(node), ())]
        return run

    def clause(self, package: str) -> str:
        """Return where a package's names are first used, where that is late; "" where it is early, or unclear."""
        bound = [(one, name) for one in self.tree.nodes for top, name in _imports(one) if top == package]
        uses = [node for _, name in bound for node in self.mentions[name]]
        unclear = any(name == "*" or self._runs_in(one) is not self.tree.tree for one, name in bound)
        if unclear or not bound or not self.early.isdisjoint(uses):
            return ""
        if not uses:
            return "its name is not used"
        late = [node for node in uses if node in self.runs]
        first = min(late or uses, key=lambda node: getattr(node, "lineno", 0))
        home, line = self.tree.home(first), f"line {getattr(first, 'lineno', 0)}"
        where = f"in {home}(), {line}" if home else f"on {line}"
        never = f"used only {where}, which nothing in the file calls"
        return f"its name is {f'first used {where}, after the training' if late else never}"


def _name(node: ast.AST) -> str:
    """Return the name that a node may stand for, also as a text; "" of others."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name
        case _:
            return ""


def _imports(node: ast.AST) -> set[tuple[str, str]]:
    """Return the top-level packages that an import statement imports, each with a name that it binds."""
    match node:
        case ast.Import(names=names):
            return {(top := one.name.partition(".")[0], one.asname or top) for one in names}
        case ast.ImportFrom(names=names, module=str(module), level=0):
            return {(module.partition(".")[0], one.asname or one.name) for one in names}
        case _:
            return set()
