"""Edits that remove the lines that switch off tf.data's own tuning."""

from tfdoctor.edits.kit import *

# Options of tf.data, and the value by which each switches tuning or threads off.
OFF = {
    "autotune.enabled": "False",
    "experimental_optimization.autotune": "False",
    "experimental_optimization.inject_prefetch": "False",
    "experimental_optimization.map_parallelization": "False",
    "experimental_optimization.parallel_batch": "False",
    "experimental_optimization.apply_default_optimizations": "False",
    "threading.private_threadpool_size": "1",
    "threading.max_intra_op_parallelism": "1",
}


def autotune_on(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Remove the line that sets the option of the rule's example for the dataset made on a line."""
    option = in_example(r"options\.([\w.]+) =", example, "the option")[1]
    statements = list[cst.SimpleStatementLine]()
    for statement in module.all(cst.SimpleStatementLine):
        match statement.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=set_to)], value=value)]:
                name = ".".join(dotted(set_to).split(".")[-2:])
                if name == option and OFF.get(name) == module.written(value):
                    statements.append(statement)
            case _:
                pass
    chosen = [statement for statement in statements if module.covers(statement, line)]
    if not chosen:  # those about the options that with_options() on the line gets
        calls = begun_on(module, module.calls("with_options"), line)
        names = [module.written(assigned.target) for assigned in module.all(cst.AssignTarget)]
        match [argument.value for call in calls for argument in call.args]:
            case [cst.Name(value=name)] if names.count(name) <= 1:  # it stands for one object
                about = [part for part in statements if module.written(part).startswith(f"{name}.")]
                chosen = [part for part in about if module.home(part) in ("", module.home(calls[0]))]
            case [cst.Call(func=cst.Name(value=name))]:
                chosen = [part for part in statements if module.home(part) == name]
            case _:
                pass
    many = "several lines set" if chosen else "the file has no line that sets"
    statement = only(chosen, f"{many} {option} for this dataset")
    block = module.parent(statement)
    if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
        raise Declined("the line is the only statement in its block")
    return [module.without(statement)]


EDITS = {"autotune-on": autotune_on}
