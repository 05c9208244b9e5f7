"""Runs the command line: the program ``tfdoctor``, and ``python -m tfdoctor`` where it is not on the PATH."""

import gc
import sys

from tfdoctor import own_python

# New objects after which Python looks for cycles among them, in place of 700. What is imported and read stays, and
# to look at it 275 times was 0.2 of the 1.3 s of a small report (`benchmarks/starts.py`, 2026-11-29).
OBJECTS = 100_000


def main() -> None:
    """Run the command line on a Python of our own; what reads recordings has a process of its own."""
    gc.set_threshold(OBJECTS)
    own_python.enter()
    from tfdoctor import own_process  # noqa: PLC0415 - only now, from where our modules are

    if own_process.COMMANDS & set(sys.argv[1:2]):
        own_process.enter()
    from tfdoctor.cli import main as run  # noqa: PLC0415 - same

    run()


if __name__ == "__main__":
    main()
