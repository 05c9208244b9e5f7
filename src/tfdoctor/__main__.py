"""Runs the command line as ``python -m tfdoctor``, for a Python without the script on its PATH."""

from tfdoctor.cli import main

if __name__ == "__main__":
    main()
