"""Answers one question about the served recordings, in a process with limits: ``python -m tfdoctor.mcp.reader``.

On the standard input is the question as JSON: the folders, the name of a method of `ServedRuns`, and its arguments.
The answer goes to the standard output; why there is none goes to the standard error, with the exit code 2.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tfdoctor.mcp.runs import ServedRuns
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.limits import ROOM, TOO_MUCH_MEMORY


def main() -> None:
    """Answer the question."""
    ROOM.begin()
    folders, method, arguments = json.load(sys.stdin)
    runs = ServedRuns([Path(folder) for folder in folders])
    answers: dict[str, Any] = {"report": runs.report, "patch": runs.patch, "difference": runs.difference}
    try:
        answer: str = answers[method](*arguments)
    except TfdoctorError as error:
        sys.stderr.buffer.write(str(error).encode("utf-8", "backslashreplace"))
        sys.exit(error.exit_code)
    except MemoryError:
        sys.exit(TOO_MUCH_MEMORY)
    sys.stdout.buffer.write(answer.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
