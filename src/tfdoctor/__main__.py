"""Runs the command line: the program ``tfdoctor``, and ``python -m tfdoctor`` where it is not on the PATH."""

from tfdoctor import own_python


def main() -> None:
    """Run the command line on a Python of our own."""
    own_python.enter()
    from tfdoctor.cli import main as run  # noqa: PLC0415 - only now, from where our modules are

    run()


if __name__ == "__main__":
    main()
