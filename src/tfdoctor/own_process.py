"""Commands that read recordings of anybody's run in a process with limits of its own.

What cannot be read, whatever it does to that process, is one sentence and the exit code 2.
"""

import os
import signal
import sys
from contextlib import suppress

from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.limits import ROOM, why

# `fleet` has such a process for each recording, and `mcp` for each call.
COMMANDS = frozenset({"report", "diff", "history"})

FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def enter() -> None:
    """Go on in a child with limits; the parent ends as the child has ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # they wait until they can be forwarded
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        ROOM.begin()
        return

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    while True:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except KeyboardInterrupt:  # Ctrl-C reaches the child as well, and is its affair
            continue
        break
    for number, handler in before.items():
        signal.signal(number, handler)
    if code < 0 and -code in {*FORWARDED, signal.SIGINT, signal.SIGPIPE}:  # somebody has ended it
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if code < 0:
        from tfdoctor.cli.streams import say  # noqa: PLC0415 - the parent loads next to nothing, so that it forks fast

        say(why(code))
    sys.exit(TfdoctorError.exit_code if code < 0 else code)
