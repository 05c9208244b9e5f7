"""``python client_child.py ADDRESS FOLDER RUN MS UNIX_NS``: has a profiler server trace its own process.

Waits until UNIX_NS, so that several of these begin together, prints "started" and the time, and asks for so
many milliseconds. Exit 0: the trace is FOLDER/plugins/profile/RUN/<host>_<port>.xplane.pb. What it throws
is the same for every fault; the reason is in the warnings that it logs on stderr, so those stay switched on.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # before the import

from xprof.convert import _pywrap_profiler_plugin as xprof

OPTIONS = {"host_tracer_level": 2, "device_tracer_level": 1}
"""As tf.profiler records: level 1 has no operations, level 0 nothing, level 3 slows the job twice as much."""

ATTEMPTS = 1
"""An idle job would be traced again and again, a dead address asked again."""


def main() -> None:
    """Ask once."""
    address, folder, run, milliseconds, start_ns = sys.argv[1:]
    time.sleep(max(0.0, (int(start_ns) - time.time_ns()) / 1e9))
    print(f"\nstarted {time.time_ns()}", flush=True)  # noqa: T201 - the answer
    options = {**OPTIONS, "session_id": run}
    try:
        xprof.trace(address, folder, "", True, int(milliseconds), ATTEMPTS, options)  # noqa: FBT003 - its API
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
