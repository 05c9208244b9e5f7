"""``python client_child.py ADDRESS FOLDER RUN MS UNIX_NS``: asks a profiler server to trace its process.

Waits until UNIX_NS, so that several clients begin together, prints "started" and the time, and asks for a
trace of MS milliseconds. Exit 0: the trace is FOLDER/plugins/profile/RUN/<host>_<port>.xplane.pb. xprof raises
the same error for every fault; the reason is in the warnings that it logs on stderr, so those stay enabled.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # before the import

from xprof.convert import _pywrap_profiler_plugin as xprof

# The levels of tf.profiler: 1 has no operations, 0 has nothing, 3 slows the job twice as much.
OPTIONS = {"host_tracer_level": 2, "device_tracer_level": 1}
ATTEMPTS = 1  # More would trace an idle job, or ask a dead address, again


def main() -> None:
    """Wait until the common start time, then request the trace; exit with the error where there is none."""
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
