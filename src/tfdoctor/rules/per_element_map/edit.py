"""The edit that batches before a map, where the mapped function does the same to a batch as to each element."""

from tfdoctor.edits.elementwise import must_be_elementwise, stacked
from tfdoctor.edits.kit import *

WHOLE = ("parse_single_example", "parse_example")  # What parses one record, and what parses a batch of them


def vectorized_map(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.map(f).batch(n)``, and parse whole batches in ``f``."""
    named = re.search(r"\.map\((\w+),", example)
    found = module.function(named[1]) if named else None
    function = known(found, "the mapped function is not one of the file with a name of its own")
    uses = [name for name in module.all(cst.Name) if name.value == function.name.value]
    if len(uses) != 2:  # noqa: PLR2004 - its definition and the map
        raise Declined(f"{function.name.value}() is also used elsewhere")
    for mapped in module.methods("map"):
        batch = next_call(module, mapped)
        if isinstance(module.parent(mapped), cst.Assign):  # d = d.map(f), and below d = d.batch(n)
            statement, _, below = in_block(module, mapped)
            again = below[0] if below and rebound(statement) == rebound(below[0]) != "" else None
            batch = [None, *calls_of(assigned(again))][-1]
            batch = batch if isinstance(receiver(batch), cst.Name) else None
        if batch is None or method_of(batch) != "batch" or not mapped.args:
            continue
        covered = module.covers(mapped, line) or module.covers(batch, line)
        if covered and module.written(mapped.args[0].value) == function.name.value:
            break
    else:
        raise Declined("batch() does not stand directly after the map")
    parses = must_be_elementwise(module, function)
    return [
        *exchanged(module, mapped, batch),
        *(module.replaced(call.func, module.written(call.func).replace(*WHOLE)) for call in parses),
        *(insert(module.span(call.args[0])[1], ", axis=-1") for call in stacked(module, function)),
    ]


EDITS = {"vectorized-map": vectorized_map}
