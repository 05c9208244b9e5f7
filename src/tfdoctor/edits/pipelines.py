"""Edits of tf.data pipelines: parallel stages, a prefetch, and a cache where every pass completes it.

A cache stands before what differs from pass to pass.
"""

from collections.abc import Iterator
from functools import partial

from tfdoctor.edits.kit import *

AUTOTUNE = "tensorflow.data.AUTOTUNE"

_KEEPS_ORDER = ("deterministic", "experimental_deterministic")
_ORDER = "the pipeline is not deterministic, so the order of its examples would change"

# After these the elements differ in each epoch, and a cache would freeze them.
RANDOM = frozenset(["shuffle", "random", "sample_from_datasets", "rejection_resample"])
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


def must_keep_order(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline parallel calls where the recorded options let them change the order of the examples."""
    options = [dataset.options or {} for dataset in program.datasets]
    if any(option.get(name) is False for option in options for name in _KEEPS_ORDER):
        raise Declined(_ORDER)


def cache(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Insert ``.cache()`` after the stage that is written on a line, and move shuffle and repeat behind it."""
    if made := MADE.match(example):
        return [appended(module, _library_call(module, line, made[1]), ".cache()")]
    if (whole := _unshuffled(module, line)) is not None:
        return [appended(module, whole, ".cache()")]
    call = _stage(module, line, example)
    if (exchanged := _behind_cache(module, call)) is not None:
        return exchanged
    statements = [call, *_statements_before(module, call)]
    moved = [part for statement in statements for part in _moved(module, statement)]
    _must_be_the_same(module, call, moved)
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
    before = receiver(call)
    cached = isinstance(before, ast.Call) and method_of(before) == "cache" and not arguments(before)
    if not isinstance(before, ast.Call) or not cached or method_of(call) != "map":
        return None
    _must_draw_nothing(module, call)
    return exchanged(module, before, call)


def _must_draw_nothing(module: SyntaxTree, call: ast.Call) -> None:
    if any("random" in module.written(node) for node in mapped_before(module, call)):
        raise Declined("a function mapped before it uses random numbers")


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


def _unshuffled(module: SyntaxTree, line: int) -> ast.Call | None:
    """Return the call of a library on a line with no stage of the file, which is told not to shuffle."""
    if not line or calls_on(module, line, TRANSFORMATIONS | MAKERS):
        return None
    made = [name for name in map(tail, module.on(ast.Call, line)) if name.endswith("dataset_from_directory")]
    call = _library_call(module, line, made[0]) if len(made) == 1 else None
    plain = call is not None and written(module, call, "shuffle") == "False"
    return call if plain else None


def _library_call(module: SyntaxTree, line: int, name: str) -> ast.Call:
    """Return the only call of a library's function on a line, which returns one dataset."""
    call = only(module.calls(name, line=line), f"line {line} has {{}} of {name}()")
    around = module.parent(call)
    if not isinstance(around, ast.Assign) or not all(isinstance(one, ast.Name) for one in around.targets):
        raise Declined(f"{name}() is not assigned to one name, so it may return several datasets")
    if _ATTRIBUTES.search(module.text):
        raise Declined("the file reads class_names or file_paths, which a cached dataset does not have")
    return call


def _moved(module: SyntaxTree, chain: ast.Call) -> Iterator[tuple[ast.Call, Splice]]:
    """Yield the shuffles and repetitions of a chain that may move behind its end, the last first."""
    for call in calls_of(chain):
        if tail(call) in MOVES:
            yield chain, segment(module, call)
        elif tail(call) not in PASSING:
            return


def _must_be_the_same(module: SyntaxTree, call: ast.Call, moved: list[tuple[ast.Call, Splice]]) -> None:
    """Decline where more before the cache differs from pass to pass than what moves."""
    chains = [call, *assigned_before(module, call)]
    methods = [method for chain in chains for method in methods_of(chain)]
    random = [method for method in methods if method in RANDOM | {"repeat", "cache"}]
    if len(random) > len(moved):
        raise Declined("the stages before it are random, repeated or already cached")
    stages = [stage for chain in chains for stage in calls_of(chain)]
    listing = [stage for stage in stages if tail(stage) == "list_files"]
    if any(written(module, stage, "shuffle") != "False" for stage in listing):
        raise Declined("list_files() shuffles the names in each epoch, and a cache would keep one order")
    _must_draw_nothing(module, call)


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
