"""What can go wrong, and the exit code each fault ends in.

TfdoctorError               2
├── InputError              2   what was given cannot be read as a recording or a trace
├── OutputError             2   where to write cannot be written
├── ConfigError             2   a setting, a rule's name, or a rule of the user's own cannot be used
└── CaptureError            2   the script could not be started under the profiler, or no running job be traced
"""


class TfdoctorError(Exception):
    """One sentence for the user: what is wrong and what to do about it."""

    exit_code = 2


class InputError(TfdoctorError):
    """What was given cannot be read as a recording or a trace."""


class OutputError(TfdoctorError):
    """Where to write cannot be written."""


class ConfigError(TfdoctorError):
    """A setting, a rule's name, or a rule of the user's own cannot be used."""


class CaptureError(TfdoctorError):
    """The script could not be started under the profiler, or no running job could be traced."""
