"""Runs the command line: the program ``tfdoctor``, and ``python -m tfdoctor`` where it is not on the PATH."""

import sys

from tfdoctor import own_python


def main() -> None:
    """Run the command line on a Python of our own; what reads recordings has a process of its own."""
    own_python.enter()
    from tfdoctor.cli import main as run  # noqa: PLC0415 - only now, from where our modules are
    from tfdoctor.cli.reading import COMMANDS, in_process_of_its_own  # noqa: PLC0415 - same

    if COMMANDS & set(sys.argv[1:2]):
        in_process_of_its_own(run)
    run()


if __name__ == "__main__":
    main()
