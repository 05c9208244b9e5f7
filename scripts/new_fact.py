"""Begins a fact: writes its module and its test, each ready to be filled in.

make fact NAME=queue-depth ROOM=input
"""

import argparse
from pathlib import Path

from scripts import new_module
from scripts.new_module import ROOT

FACTS = ROOT / "src" / "tfdoctor" / "facts"

FACT = '''\
"""TODO: one sentence that says what is measured."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.steps.steps import Steps


class {kind}(Record):
    """TODO: what it holds, with units. Milliseconds per training step unless a name says otherwise."""

    lines: float  # TODO: threads of the host per step, an example

    @classmethod
    def measure(cls, trace: Trace, steps: Steps) -> Self:
        """TODO: name the parts of the recording and the facts you need; they arrive by type.

        Raises:
            Unavailable: TODO: what is missing.
        """
        if trace.host is None:
            raise Unavailable("TODO: what is missing, and how to get it")
        return cls(len(trace.host_lines) / steps.count)
'''

TEST = '''\
"""{kind}: exact on a trace made by hand, and why it is missing where it is."""

from tests.facts.kit import *
from tfdoctor.facts.{module} import {kind}


def test_it_is_exact() -> None:
    host = trace(host=[line("python"), line("worker")])
    steps = even_steps(4, 10.0)
    measured = {kind}.measure(host, steps)

    assert measured.lines == 0.5


def test_it_says_what_is_missing() -> None:
    known = Chart([Trace(()), even_steps(4, 10.0)])

    assert "TODO" in known.why_missing({kind})
'''


def main() -> None:
    """Write both files, or say why not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="a noun for what is measured, such as queue-depth")
    rooms = sorted(path.parent.name for path in FACTS.glob("*/__init__.py"))
    parser.add_argument("--room", choices=rooms, required=True, help="the folder it belongs to")
    options = parser.parse_args()
    new_module.check_name(options.name, "queue-depth")
    new_module.check_class_name(class_name(options.name))
    new_module.write(files(options.name, options.room))


def class_name(name: str) -> str:
    """Return the name of a fact's class: QueueDepth for queue-depth."""
    return "".join(map(str.capitalize, name.split("-")))


def files(name: str, room: str) -> dict[Path, str]:
    """Return the texts of a new fact's module and test."""
    module, kind = name.replace("-", "_"), class_name(name)
    test = ROOT / "tests" / "facts" / room / f"test_{module}.py"
    return {
        FACTS / room / f"{module}.py": FACT.format(kind=kind),
        test: TEST.format(kind=kind, module=f"{room}.{module}"),
    }


if __name__ == "__main__":
    main()
