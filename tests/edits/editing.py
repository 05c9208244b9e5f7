"""Edits a text as the report does, and applies diffs as the user does."""

import ast
import subprocess
from pathlib import Path

from tfdoctor.edits import by_id
from tfdoctor.rules import all_rules
from tfdoctor.rules.operations.unfused_batch_norm import CODE
from tfdoctor.source_code.splice import Declined, spliced
from tfdoctor.source_code.tree import SyntaxTree

KINDS: dict[str, by_id.Kind] = {
    **by_id.KINDS,
    **{edit_id: edit for rule in all_rules() for edit_id, edit in rule.edits().items()},
}
"""All edits by their ids: those that rules share, and those of one rule."""

EXAMPLES = {
    "cache": "dataset = dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.cache()",
    "mixed-precision": 'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    "steps-per-execution": "model.compile(optimizer, loss, steps_per_execution=16)",
    "vectorized-map": "dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
    "fused-batch-norm": CODE["drop-in"],
    "decode-ratio": "ratio=4",
    "precision-policy": 'keras.mixed_precision.set_global_policy("float32")',
    "earlier-shuffle": "dataset = dataset.shuffle(3200).batch(32)",
    "layer-width": "130  ->  128    # fewer tiles",
}
"""The examples of rules, where an edit takes its value from the example."""


def edited(edit_id: str, text: str, marked: str = "", example: str | None = None) -> str:
    """Return a text after one edit, of the first line that holds the mark; "" is an unknown line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    number = 1 + next(at for at, line in enumerate(lines) if marked in line) if marked else 0
    given = EXAMPLES.get(edit_id, "") if example is None else example
    new = spliced(text, KINDS[edit_id](SyntaxTree(text), number, given))
    ast.parse(new)
    return new


def declined(edit_id: str, text: str, marked: str = "", example: str | None = None) -> str | None:
    """Return the same; None where the edit is not made."""
    try:
        return edited(edit_id, text, marked, example)
    except Declined:
        return None


def git_apply(patch: bytes, folder: Path) -> None:
    """Apply a patch below a folder by git itself, which checks every byte of it."""
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=patch, cwd=folder, check=True, capture_output=True, timeout=60)
