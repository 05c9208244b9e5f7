"""How far a finding walks from ``tfdoctor report`` to the page: ``python -m benchmarks.walk [RECORDING RULE]``.

A stay is a run of calls in one module among those that hand the finding on, as an argument or a result, also
within records, lists and mappings, or by its sentence; the modules on the way to the rule come before. A climb is a
step from a module to one of a higher layer of the import contracts. The walk ends where the HTML page is written.
It is counted with each return to a module, as of a template that calls two modules in turn, and by first
visits alone: what a reader opens. One recording of the samples is reported on, with this rule alone.
"""

import sys
import tempfile
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import FrameType

from tfdoctor import cli
from tfdoctor.terms.verdict import Finding

ROOT = Path(__file__).parents[1]
SOURCE = f"{ROOT / 'src' / 'tfdoctor'}/"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = {
    room.strip(): rank for rank, rooms in enumerate(reversed(CONTRACTS[0]["layers"])) for room in rooms.split("|")
}

DEPTH = 4  # Values within values in which a finding is looked for
MOST = 120  # Items of a list in which it is looked for: a report has a result for each rule
KEY = 40  # Characters of its sentence by which a text with it is known


class Walk:
    """The modules that hand a finding on, in the order of the calls."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.sentence = ""
        self.looking = self.ended = False

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        """Note a call, or its end, as ``sys.setprofile`` reports it."""
        name = _module(frame)
        if self.looking or self.ended or not name or event not in ("call", "return"):
            return
        self.looking = True
        if not self.sentence and event == "return" and isinstance(result, Finding):
            self.sentence = result.summary[:KEY]
            for above in reversed(_stack(frame)):
                self._stay(above)
        elif self.sentence:
            code = frame.f_code
            given = [
                frame.f_locals.get(one) for one in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            ]
            if self._has(given if event == "call" else result):
                self._stay(name)
            self.ended = event == "return" and name == "report/files" and code.co_name == "write"
        self.looking = False

    def _stay(self, module: str) -> None:
        if self.modules[-1:] != [module] and module != "terms/record":  # whose code is that of every value
            self.modules.append(module)

    def _has(self, value: object, depth: int = DEPTH) -> bool:
        """Say whether a value is the finding, has it, or has its sentence."""
        if isinstance(value, Finding):
            return True
        if isinstance(value, str):
            return self.sentence in value
        if isinstance(value, Mapping):
            value = tuple(value.values())
        elif fields := getattr(type(value), "__dataclass_fields__", None):
            value = tuple(getattr(value, one, None) for one in fields)
        inner = value[:MOST] if isinstance(value, list | tuple) and depth else ()
        return any(self._has(one, depth - 1) for one in inner)


def _module(frame: FrameType) -> str:
    """Return the module of our own that a frame runs, as a path; "" for other code, and for an import."""
    path, code = frame.f_code.co_filename, frame.f_code
    known = path.startswith(SOURCE) and code.co_name != "<module>" and not code.co_qualname.startswith("Finding.")
    return path.removeprefix(SOURCE).removesuffix(".py") if known else ""


def _stack(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame:
        found += filter(None, [_module(frame)])
        frame = frame.f_back
    return found


def _length(modules: list[str]) -> str:
    rooms = [LAYERS.get(module.partition("/")[0], len(LAYERS)) for module in modules]
    climbs = sum(after > before for before, after in pairwise(rooms))
    return f"{len(modules)} stays, {climbs} climbs"


def main() -> None:
    """Print the walk and its length."""
    recording, rule = sys.argv[1:3] or (str(ROOT / "sample_traces" / "cpu-input-bound"), "input-bound")
    walk = Walk()
    with tempfile.TemporaryDirectory() as out:
        sys.argv = ["tfdoctor", "report", recording, "--select", rule, "--out", out, "--format", "html"]
        sys.setprofile(walk)
        try:
            cli.main()
        finally:
            sys.setprofile(None)
            print("\n".join(walk.modules))
            print(f"with returns: {_length(walk.modules)}")
            print(f"first visits: {_length([*dict.fromkeys(walk.modules)])}")


if __name__ == "__main__":
    main()
