"""The edit that writes another type into the precision policy, where the file names float16 nowhere else."""

from tfdoctor.edits.kit import *

POLICY = "mixed_float16"

# Functions and classes of Keras, old and new, that take the name of a policy.
SETTERS = frozenset(["DTypePolicy", "Policy", "set_dtype_policy", "set_global_policy", "set_policy"])


def precision_policy(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Write the policy of the rule's example in place of the only ``"mixed_float16"`` of the file."""
    chosen = in_example(r'"(mixed_bfloat16|float32)"', example, "the type to train in")[1]
    texts = [text for text in module.all(cst.SimpleString) if text.evaluated_value == POLICY]
    text = only(texts, f"the file names {POLICY} {'several times' if texts else 'nowhere'}")
    match module.parent(text):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=constant) as own)]):
            uses = [name for name in module.all(cst.Name) if name.value == constant]
            given = all(name is own or _is_given(module, name) for name in uses)
        case _:
            given = _is_given(module, text, cst.IfExp)
    if not given:
        raise Declined(f"the file does not show that {POLICY} is used for the policy alone")
    if any(name.value in ("float16", "half") for name in module.all(cst.Name)) or any(
        other.evaluated_value in ("float16", "half") for other in module.all(cst.SimpleString)
    ):
        raise Declined("the file also has float16, which may need values of the same type")
    return [module.replaced(text, f"{text.quote}{chosen}{text.quote}")]


def _is_given(module: SyntaxTree, node: cst.CSTNode, *within: type[cst.CSTNode]) -> bool:
    """Say whether a node is an argument of what sets a policy, or a part of one."""
    parent = module.parent(node)
    while parent is not None and isinstance(parent, (cst.Arg, *within)):
        parent = module.parent(parent)
    return isinstance(parent, cst.Call) and last_name(parent.func) in SETTERS


EDITS = {"precision-policy": precision_policy}
