"""Runs the command line: the program ``tfdoctor``, and ``python -m tfdoctor`` where it is not on the PATH."""

import sys

from tfdoctor import own_python


def main() -> None:
    """Run the command line on a Python of our own; what reads recordings has a process of its own."""
    own_python.enter()
    from tfdoctor import own_process  # noqa: PLC0415 - only now, from where our modules are

    if own_process.COMMANDS & set(sys.argv[1:2]):
        own_process.enter()
    from tfdoctor.cli import main as run  # noqa: PLC0415 - same

    run()


if __name__ == "__main__":
    main()
