"""The edit that writes another type into the precision policy, where the file names float16 nowhere else."""

from tfdoctor.edits.kit import *

POLICY = "mixed_float16"

# Functions and classes of Keras, old and new, that take the name of a policy.
SETTERS = frozenset(["DTypePolicy", "Policy", "set_dtype_policy", "set_global_policy", "set_policy"])


def precision_policy(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Write the policy of the rule's example in place of the only ``"mixed_float16"`` of the file."""
    chosen = in_example(r'"(mixed_bfloat16|float32)"', example, "the type to train in")[1]
    texts = [text for text in module.all(ast.Constant) if text.value == POLICY]
    text = only(texts, f"the file names {POLICY} {'several times' if texts else 'nowhere'}")
    match module.parent(text):
        case ast.Assign(targets=[ast.Name(id=constant) as own]):
            given = all(name is own or _is_given(module, name) for name in module.mentions(constant))
        case _:
            given = _is_given(module, text, ast.IfExp)
    if not given:
        raise Declined(f"the file does not show that {POLICY} is used for the policy alone")
    others = module.mentions("float16", "half")
    if others or any(other.value in ("float16", "half") for other in module.all(ast.Constant)):
        raise Declined("the file also has float16, which may need values of the same type")
    literal = re.fullmatch(rf"[rRuU]?([\"']+){POLICY}\1", module.written(text))
    quotes = known(literal, f"{POLICY} is written in several parts")[1]
    return [module.replaced(text, f"{quotes}{chosen}{quotes}")]


def _is_given(module: SyntaxTree, node: ast.AST, *within: type[ast.AST]) -> bool:
    """Say whether a node is an argument of what sets a policy, or a part of one."""
    user = next(outer for outer in module.outward(node) if not isinstance(outer, (ast.keyword, *within)))
    return isinstance(user, ast.Call) and tail(user) in SETTERS


EDITS = {"precision-policy": precision_policy}
