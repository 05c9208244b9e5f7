"""Scripts that are edited in several places at once, with the words of the lines that each edit is asked for.

The findings are made up, each at its line: what tfdoctor's own rules find depends on the machine.
"""

from pathlib import Path

from tests.cases import text_parts
from tests.edits.kit import EXAMPLES, finding, remedy
from tfdoctor.edits import edited
from tfdoctor.recording import Recording

FIT_EDITS = {
    "parallel-interleave": ".interleave(",
    "parallel-map": "dataset.map(",
    "cache": "dataset.map(",
    "parallel-batch": ".batch(",
    "prefetch": ".batch(",
    "mixed-precision": "Dense(8",
    "jit-compile": "compile(",
    "steps-per-execution": "compile(",
}
LOOP_EDITS = {"prefetch": ".batch(", "run-eagerly-off": "compile("}
EDITS = {"loop": LOOP_EDITS, "gan": {"tf-function": "for step, real"}, "fit": FIT_EDITS}
CASES = {name: (text, EDITS[name]) for name, text in text_parts(Path(__file__).with_name("edited.txt")).items()}
"""The last one sets the type of all layers."""


def patch(folder: Path, name: str) -> str:
    """Return the patch of a recorded script by all edits that are asked for."""
    text, asked = CASES[name]
    lines = text.split("\n")
    at = {edit_id: 1 + next(at for at, one in enumerate(lines) if words in one) for edit_id, words in asked.items()}
    findings = [finding(one, remedy(one, f"{name}.py", line, EXAMPLES.get(one, ""))) for one, line in at.items()]
    results, made = edited(Recording.open(folder / name), findings, None)
    told = [edit.missing for result in results for edit in result.edits]
    assert told == [""] * len(asked), told
    return made.decode()
