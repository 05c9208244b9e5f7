"""Errors that a user can fix, with their exit codes.

TfdoctorError               2
├── InputError              2   the input is not a recording or a trace, or cannot be read
├── OutputError             2   the output cannot be written
│   ├── NotEmptyError       2   the output folder already has files
│   └── LostRecordingError  2   a run has ended, and its recording cannot be completed
├── ConfigError             2   a setting, a rule name or one of the user's own rules is invalid
├── CaptureError            2   the script could not be profiled, or no running job traced
└── InterruptedTrialError 130   Ctrl-C ended a trial before anything was measured
"""

from tfdoctor.terms.text import legible


class TfdoctorError(Exception):
    """One sentence for the user: what is wrong, and what to do."""

    exit_code = 2

    def __str__(self) -> str:
        """Return the sentence; a name in it may be any text."""
        return legible(super().__str__())


class InputError(TfdoctorError):
    """The input is not a recording or a trace, or cannot be read."""


class OutputError(TfdoctorError):
    """The output cannot be written."""


class NotEmptyError(OutputError):
    """The output folder already has files."""


class LostRecordingError(OutputError):
    """A run has ended, and its recording cannot be completed: `tfdoctor profile` ends with the script's code."""

    def __init__(self, message: str, script_code: int) -> None:
        super().__init__(message)
        self.script_code = script_code


class ConfigError(TfdoctorError):
    """A setting, a rule name or one of the user's own rules is invalid."""


class CaptureError(TfdoctorError):
    """The script could not be profiled, or no running job traced."""


class InterruptedTrialError(TfdoctorError):
    """Ctrl-C ended a trial before anything was measured."""

    exit_code = 130  # of Ctrl-C, as a shell shows it
