"""A call of a driver's library that is given up once it fails for good."""

from collections.abc import Callable
from typing import Any

# Errors that do not go away: the call is not repeated.
PERMANENT = (
    "NotSupported", "FunctionNotFound", "NoPermission", "LibraryMismatch", "InvalidArgument",
    "GpuIsLost",
)  # fmt: skip

FAILURES = 5  # A call that fails this often in a row is not repeated


class Probe:
    """A call that is not repeated after a permanent error, or FAILURES errors in a row."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call, self.dead, self.error, self.failures = call, False, "", 0

    def __call__(self) -> Any:  # noqa: ANN401  # the answer's type depends on the call
        """Return the answer, or None after an error."""
        if self.dead:
            return None
        try:
            value = self.call()
        except Exception as error:  # noqa: BLE001  # NVMLLibraryMismatchError is no NVMLError
            self.error, self.failures = type(error).__name__, self.failures + 1
            self.dead = self.failures >= FAILURES or any(name in self.error for name in PERMANENT)
            return None
        self.failures = 0
        return value
