"""The edit that batches before a map, where the mapped function does the same to a batch as to each element."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.chains import methods_of, segment
from tfdoctor.edits.elementwise import must_be_elementwise, stacked
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.rebound import assigned, rebound
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values

_NAMED = re.compile(r"\.map\((\w+),")

WHOLE = ("parse_single_example", "parse_example")  # What parses one record, and what parses a batch of them


def vectorized_map(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.map(f).batch(n)``, and parse whole batches in ``f``."""
    named = _NAMED.search(example)
    values = Values(module)
    function = values.function(named[1]) if named else None
    if function is None:
        raise Declined("the mapped function is not one of the file with a name of its own")
    uses = [name for name in module.all(cst.Name) if name.value == function.name.value]
    if len(uses) != 2:  # noqa: PLR2004 - its definition and the map
        raise Declined(f"{function.name.value}() is also used elsewhere")
    mapped, batch = _stages(module, function.name.value, line)
    parses = must_be_elementwise(module, values, function)
    stacks = stacked(module, values, function)
    first, second = segment(module, mapped), segment(module, batch)
    return [
        Splice(first.start, first.end, 0, second.text),
        Splice(second.start, second.end, 0, first.text),
        *(Splice(*module.span(call.func), 0, module.written(call.func).replace(*WHOLE)) for call in parses),
        *(insert(module.span(call.args[0])[1], ", axis=-1") for call in stacks),
    ]


def _stages(module: SyntaxTree, name: str, line: int) -> tuple[cst.Call, cst.Call]:
    """Return the map of a function, and the batch directly after it: in its chain, or in the next statement."""
    for mapped in module.all(cst.Call):
        if methods_of(mapped)[:1] != ["map"] or not mapped.args:
            continue
        method = module.parent(mapped)
        if isinstance(method, cst.Assign):
            batch: cst.CSTNode | None = _in_next_statement(module, mapped)
        else:
            batch = module.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(batch, cst.Call) or methods_of(batch)[:1] != ["batch"]:
            continue
        covered = module.covers(mapped, line) or module.covers(batch, line)
        if covered and module.written(mapped.args[0].value) == name:
            return mapped, batch
    raise Declined("batch() does not stand directly after the map")


def _in_next_statement(module: SyntaxTree, mapped: cst.Call) -> cst.Call | None:
    """Return the batch() that ``d = d.batch(n)`` begins with, in the statement below ``d = d.map(f)``."""
    line = next(module.around(mapped, cst.SimpleStatementLine), None)
    block = module.parent(line) if line else None
    if line is None or not isinstance(block, cst.Module | cst.IndentedBlock):
        return None
    below = next(iter(block.body[list(block.body).index(line) + 1 :]), None)
    name, chain = rebound(line), assigned(below)
    if chain is None or not name or rebound(below) != name:
        return None
    while isinstance(chain.func, cst.Attribute) and isinstance(chain.func.value, cst.Call):
        chain = chain.func.value
    plain = isinstance(chain.func, cst.Attribute) and isinstance(chain.func.value, cst.Name)
    return chain if plain and methods_of(chain) == ["batch"] else None


EDITS: dict[str, Kind] = {"vectorized-map": vectorized_map}
