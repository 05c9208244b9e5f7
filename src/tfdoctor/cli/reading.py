"""Commands that read recordings of anybody's run in a process with limits of its own.

What cannot be read, whatever it does to that process, is one sentence and the exit code 2.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from tfdoctor.cli.messages import say
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.limits import ROOM, why

COMMANDS = frozenset({"report", "diff", "history"})
"""`fleet` has such a process for each recording, and `mcp` for each call."""

FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def in_process_of_its_own(command: Callable[[], None]) -> None:
    """Run a command in a child with limits, and end as it has ended."""
    child = os.fork()
    if not child:
        ROOM.begin()
        command()
        sys.exit(0)

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    code = _ended(child)
    for number, handler in before.items():
        signal.signal(number, handler)
    if code < 0 and -code in {*FORWARDED, signal.SIGINT, signal.SIGPIPE}:  # somebody has ended it
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if code < 0:
        say(why(code))
    sys.exit(TfdoctorError.exit_code if code < 0 else code)


def _ended(child: int) -> int:
    """Return the code with which a child has ended; Ctrl-C reaches it as well, and is its affair."""
    while True:
        try:
            _, status = os.waitpid(child, 0)
        except KeyboardInterrupt:
            continue
        return os.waitstatus_to_exitcode(status)
