"""The edit that writes another type into the precision policy, where the file names float16 nowhere else."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice

POLICY = "mixed_float16"

# Functions and classes of Keras, old and new, that take the name of a policy.
SETTERS = frozenset(["DTypePolicy", "Policy", "set_dtype_policy", "set_global_policy", "set_policy"])

_TARGET = re.compile(r'"(mixed_bfloat16|float32)"')


def precision_policy(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Write the policy of the rule's example in place of the only ``"mixed_float16"`` of the file."""
    target = _TARGET.search(example)
    if target is None:
        raise Declined("the finding does not name the type to train in")
    texts = [text for text in module.all(cst.SimpleString) if text.evaluated_value == POLICY]
    if len(texts) != 1:
        raise Declined(f"the file names {POLICY} {'several times' if texts else 'nowhere'}")
    if not _is_policy(module, texts[0]):
        raise Declined(f"the file does not show that {POLICY} is used for the policy alone")
    if any(name.value in ("float16", "half") for name in module.all(cst.Name)) or any(
        text.evaluated_value in ("float16", "half") for text in module.all(cst.SimpleString)
    ):
        raise Declined("the file also has float16, which may need values of the same type")
    quote = texts[0].quote
    return [module.replaced(texts[0], f"{quote}{target[1]}{quote}")]


def _is_policy(module: SyntaxTree, text: cst.SimpleString) -> bool:
    """Say whether a text is given to what sets a policy, directly or as a constant that has no other use."""
    match module.parent(text):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=constant) as target)]):
            uses = [name for name in module.all(cst.Name) if name.value == constant]
            return all(name is target or _is_given(module, name) for name in uses)
        case _:
            return _is_given(module, text, cst.IfExp)


def _is_given(module: SyntaxTree, node: cst.CSTNode, *within: type[cst.CSTNode]) -> bool:
    """Say whether a node is an argument of what sets a policy, or a part of one."""
    parent = module.parent(node)
    while parent is not None and isinstance(parent, (cst.Arg, *within)):
        parent = module.parent(parent)
    return isinstance(parent, cst.Call) and last_name(parent.func) in SETTERS


EDITS: dict[str, Kind] = {"precision-policy": precision_policy}
