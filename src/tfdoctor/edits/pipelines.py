"""Edits of tf.data pipelines: parallel stages, a prefetch, and a cache where every pass completes it.

A cache stands before what differs from pass to pass.
"""

from collections.abc import Iterator
from functools import partial
from itertools import takewhile

from tfdoctor.edits.kit import *
from tfdoctor.facts.input.cacheable import MOVABLE
from tfdoctor.facts.input.dataset_properties import repeatable
from tfdoctor.facts.run.program import Dataset, Places, kind_of, upstream_of
from tfdoctor.terms.verdict import Location

AUTOTUNE = "tensorflow.data.AUTOTUNE"

_KEEPS_ORDER = ("deterministic", "experimental_deterministic")
_ORDER = "the pipeline is not deterministic, so the order of its examples would change"

MAPPING = frozenset(["filter", "flat_map", "interleave", "map"])  # Stages that call a function for each element
MOVES = frozenset(["shuffle", "repeat"])  # Stages that may stand behind the cache of single elements instead
# Stages that pass on each element, so that a shuffle or a repetition may move behind them.
PASSING = frozenset(["map", "filter", "with_options", "prefetch"])

MAPPED = re.compile(r"^dataset = dataset\.map\((\w+)")
# The stage to cache in the rule's example: a mapped function, or the call of a library.
MADE = re.compile(r"^dataset = (\w+)\(\.\.\.\)")

_ATTRIBUTES = re.compile(r"\.(class_names|file_paths)\b")


def prefetch(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Append ``.prefetch(tf.data.AUTOTUNE)`` to the pipeline whose last stage is written on a line."""
    call = whole_chain(module, line)
    if "prefetch" in methods_of(call):
        raise Declined("the pipeline has a prefetch in the middle: move it to the end")
    return [appended(module, call, f".prefetch({module.imported(AUTOTUNE, call)})", rank=1)]


def _parallel(method: str, position: int, module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``num_parallel_calls`` to a method on a line, which takes so many positional arguments before it."""
    call = only_call(module, line, {method})
    if re.search(r"deterministic\s*=\s*(?!True\b|None\b)", module.text):
        raise Declined(_ORDER)
    autotune = module.imported(AUTOTUNE, call)
    return [setting(module, call, "num_parallel_calls", autotune, instead_of=("None",), position=position)]


parallel_map = partial(_parallel, "map", 1)
parallel_batch = partial(_parallel, "batch", 2)
parallel_interleave = partial(_parallel, "interleave", 3)


def must_keep_order(program: ProgramRecord, _: SyntaxTree, __: int, ___: str) -> None:
    """Decline parallel calls where the recorded options let them change the order of the examples."""
    options = [dataset.options or {} for dataset in program.datasets]
    if any(option.get(name) is False for option in options for name in _KEEPS_ORDER):
        raise Declined(_ORDER)


def must_be_repeatable(program: ProgramRecord, module: SyntaxTree, line: int, example: str) -> None:
    """Decline a cache where a dataset of its line, or one before, is not recorded to be the same in every pass.

    The graphs tell all that a function draws: what its Python drew while it was traced is a constant in them.
    """
    for one in (one for chain in _recorded(program, module, line, example) for one in chain):
        if kind_of(one) not in MOVABLE and not (same := repeatable(one)):
            does = "may give another result in each pass" if same is None else "draws random numbers"
            raise Declined(f"{one.function or kind_of(one)} {does}, and a cache would keep the first one")


def must_be_cacheable(program: ProgramRecord, module: SyntaxTree, line: int, example: str) -> None:
    """Decline a cache also where more before it differs from pass to pass than what moves."""
    must_be_repeatable(program, module, line, example)
    library = MADE.match(example) or _from_folder(module, line)
    call = None if library else _stage(module, line, example)
    cached = call is not None and _behind_cache(module, call) is not None
    moved = len(_moving(module, call)) if call and not cached else 0
    for chain in _recorded(program, module, line, example):
        same = takewhile(lambda one: not (cached and kind_of(one) == "Cache"), chain)
        kinds = [kind_of(one) for one in same if kind_of(one) != "Shuffle" or not repeatable(one)]
        if "Cache" in kinds or sum(kind in MOVABLE for kind in kinds) > moved:
            raise Declined("the stages before it are shuffled, repeated or already cached")


def _recorded(program: ProgramRecord, module: SyntaxTree, line: int, example: str) -> list[list[Dataset]]:
    """Return what a cache of a line may follow, each dataset with those before: all, where a library made them."""
    given = [one for call in calls_on(module, line, MAPPING) for one in arguments(call)[:1]]
    called = [*given, *(call.func for call in module.inside(ast.Call, *given))]
    bound = {one: module.bound(one) for one in called if isinstance(one, ast.Name)}
    datasets = [Dataset.of(one, Places()) for one in program.datasets]
    made = [one for one in datasets if one.at == Location(module.path, line)]
    stages = [one for one in made if one.function or not calls_on(module, line, TRANSFORMATIONS | MAKERS)] or made
    if (mapped := MAPPED.match(example)) and any(
        one in given and one.id == mapped[1] and all(isinstance(node, Function | ast.alias) for node in nodes)
        for one, nodes in bound.items()
    ):  # of several stages on the line, this one
        stages = [one for one in stages if one.function == mapped[1]]
    elif any(isinstance(one, ast.arg) and not module.source(one) for nodes in bound.values() for one in nodes):
        raise Declined("the mapped function is a parameter, and other calls may pass one that draws random numbers")
    if not stages:
        raise Declined("the recording has no dataset of this line")
    return [[one, *upstream_of(datasets, one.inputs)] for one in stages]


def cache(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Insert ``.cache()`` after the stage that is written on a line, and move shuffle and repeat behind it."""
    if made := MADE.match(example):
        return [appended(module, _library_call(module, line, made[1]), ".cache()")]
    if (whole := _from_folder(module, line)) is not None:
        return [appended(module, whole, ".cache()")]
    call = _stage(module, line, example)
    if (exchanged := _behind_cache(module, call)) is not None:
        return exchanged
    moved = _moving(module, call)
    removed = [_removed(module, statement, part) for statement, part in moved]
    within = all(statement is call for statement, _ in moved)
    behind = [part.new if within else part.new.strip() for _, part in reversed(moved)]
    return [*removed, appended(module, call, f".cache(){''.join(behind)}")]


def cache_before_repeat(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Change ``.repeat().cache()`` to ``.cache().repeat()`` within one chain."""
    call = only_call(module, line, {"cache"})
    repeat = receiver(call)
    if not isinstance(repeat, ast.Call) or method_of(repeat) != "repeat":
        raise Declined("repeat() does not stand directly before cache() in one chain")
    return exchanged(module, repeat, call)


def _behind_cache(module: SyntaxTree, call: ast.Call) -> list[Splice] | None:
    """Change ``.cache().map(f)`` to ``.map(f).cache()``; None where no cache in memory stands directly before."""
    before = receiver(call) if method_of(call) == "map" else None
    if isinstance(before, ast.Call) and method_of(before) == "cache" and not arguments(before):
        return exchanged(module, before, call)
    return None


def _stage(module: SyntaxTree, line: int, example: str) -> ast.Call:
    """Return the only stage on a line, or the one that maps the example's function."""
    named = MAPPED.match(example)
    calls = calls_on(module, line, TRANSFORMATIONS | MAKERS)
    maps = [call for call in calls if method_of(call) == "map"]
    if named and named[1] != "function":
        maps = [call for call in maps if call.args and module.written(call.args[0]) == named[1]]
    if named and len(calls) > 1 and len(maps) == 1:
        return maps[0]
    return only_call(module, line, TRANSFORMATIONS | MAKERS)


def _from_folder(module: SyntaxTree, line: int) -> ast.Call | None:
    """Return the call of a library on a line with no stage of the file."""
    if not line or calls_on(module, line, TRANSFORMATIONS | MAKERS):
        return None
    made = [name for name in map(tail, module.on(ast.Call, line)) if name.endswith("dataset_from_directory")]
    return _library_call(module, line, made[0]) if len(made) == 1 else None


def _library_call(module: SyntaxTree, line: int, name: str) -> ast.Call:
    """Return the only call of a library's function on a line, which returns one dataset."""
    call = only(module.calls(name, line=line), f"line {line} has {{}} of {name}()")
    around = module.parent(call)
    if not isinstance(around, ast.Assign) or not all(isinstance(one, ast.Name) for one in around.targets):
        raise Declined(f"{name}() is not assigned to one name, so it may return several datasets")
    if _ATTRIBUTES.search(module.text):
        raise Declined("the file reads class_names or file_paths, which a cached dataset does not have")
    return call


def _moving(module: SyntaxTree, call: ast.Call) -> list[tuple[ast.Call, Splice]]:
    """Return the shuffles and repetitions that may move behind a call, each with its chain, the last first."""
    moved = []
    for chain in (call, *_statements_before(module, call)):
        for stage in takewhile(lambda one: tail(one) in MOVES | PASSING, calls_of(chain)):
            moved += [(chain, segment(module, stage))] if tail(stage) in MOVES else []
    return moved


def _statements_before(module: SyntaxTree, call: ast.Call) -> Iterator[ast.Call]:
    """Yield the chains of the statements directly before, which give the same name its dataset."""
    line, above, _ = in_block(module, call)
    name = rebound(line)
    for earlier in reversed(above) if name else ():
        given, chain = assigned(earlier)
        if chain is None or given != name:
            return
        yield chain
        if rebound(earlier) != name or not set(methods_of(chain)) <= PASSING | MOVES:
            return


def _removed(module: SyntaxTree, chain: ast.Call, part: Splice) -> Splice:
    """Remove a stage; the whole line where nothing else is left of it."""
    if "#" in module.text[part.end : module.lines.end(part.end)]:
        raise Declined("a comment stands beside a stage that has to move")
    statement, _, _ = in_block(module, chain)
    if statement is not None and rebound(statement) and len(methods_of(chain)) == 1:
        start = module.lines.start(module.span(statement)[0])
        return Splice(start, module.lines.next(part.end), 0, "")
    return Splice(part.start, part.end, 0, "")
