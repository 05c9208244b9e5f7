"""Edits a text as the report does, and applies diffs as the user does."""

import subprocess
from pathlib import Path

from tfdoctor.edits import by_id
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import spliced
from tfdoctor.rules import all_rules
from tfdoctor.rules.unfused_batch_norm import CODE

KINDS: dict[str, by_id.Kind] = {
    **by_id.KINDS,
    **{edit_id: edit for rule in all_rules() for edit_id, edit in rule.edits().items()},
}
"""All edits by their ids: those that rules share, and those of one rule."""

POLICY = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'
SEVERAL = "model.compile(optimizer, loss, steps_per_execution=16)"
CACHED = "dataset = dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.cache()"
EXAMPLES = {
    "cache": CACHED,
    "mixed-precision": POLICY,
    "steps-per-execution": SEVERAL,
    "fused-batch-norm": CODE["drop-in"],
}
"""The examples of rules, where an edit takes its value from the example."""


def edited(edit_id: str, text: str, marked: str = "") -> str:
    """Return a text after one edit, of the first line that holds the mark; "" is an unknown line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    number = 1 + next(at for at, line in enumerate(lines) if marked in line) if marked else 0
    return spliced(text, KINDS[edit_id](SyntaxTree(text), number, EXAMPLES.get(edit_id, "")))


def git_apply(patch: bytes, folder: Path) -> None:
    """Apply a patch below a folder by git itself, which checks every byte of it."""
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=patch, cwd=folder, check=True, capture_output=True, timeout=60)
