"""`%%tfdoctor` records a notebook cell and shows its report; `%load_ext tfdoctor` makes it known to IPython."""

import shlex
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser

from tfdoctor.api.cell import CellBody
from tfdoctor.api.run import Run, record
from tfdoctor.terms.errors import TfdoctorError

HELP = """Record this cell, and show the report below it: where its time goes, and what slows its training steps.

The cell runs as usual, with its outputs and errors. Then a line says how many steps were traced and where the
recording is. After an error the report covers what came before it."""

# The part of the help below the options.
EXAMPLE = """Examples::

  %%tfdoctor
  model.fit(data)

  %%tfdoctor run --out runs/first --warmup 5 --steps 10
  model.fit(data)

The variable `run` is then the result of `tfdoctor.record`: `run.report(["md"])` writes a report in Markdown."""


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401  # IPython's
    """Make `%%tfdoctor` known to this shell: what `%load_ext tfdoctor` calls."""
    options = MagicOptions()

    def magic(line: str, cell: str) -> None:
        name, recording = options.recording(line)
        body = CellBody(shell, cell)
        if name is not None:
            shell.user_ns[name] = recording
        body.run(recording)
        found = recording.recording
        if found is not None and (found.traces or found.run is not None):  # anything to report on
            try:
                recording.show()
            except TfdoctorError as error:
                raise UsageError(str(error)) from None

    magic.__doc__ = options.format_help()
    shell.register_magic_function(magic, "cell", "tfdoctor")


class MagicOptions(MagicArgumentParser):
    """The options of `%%tfdoctor`, those of `tfdoctor.record`."""

    def __init__(self) -> None:
        super().__init__("%tfdoctor", description=HELP, epilog=EXAMPLE)  # type: ignore[no-untyped-call] # IPython has no types here
        self.allow_abbrev = False
        add = self.add_argument
        add("name", nargs="?", help="Variable for the result.")
        add("--out", metavar="DIR", help="Folder for the recording; a new one in runs by default.")
        add("--steps", type=int, default=20, metavar="N", help="Training steps to trace (20).")
        warmup = "Training steps before tracing starts (10)."
        add("--warmup", type=int, default=10, metavar="N", help=warmup)
        seconds = "Trace for this long instead, for training without visible steps."
        add("--seconds", type=float, metavar="S", help=seconds)
        add("--no-trace", action="store_true", help="Record only where the time of the cell goes.")
        epochs = "Also say what the findings save of a run of so many epochs."
        add("--for-epochs", type=int, metavar="N", help=epochs)
        sample = "Period for sampling the machine; 0 turns sampling off (200)."
        add("--sample-every", type=int, default=200, metavar="MS", help=sample)

    def error(self, message: str) -> NoReturn:
        """Raise what IPython shows as one line."""
        raise UsageError(f"%%tfdoctor: {message}; %%tfdoctor? lists the options.")

    def recording(self, line: str) -> tuple[str | None, Run]:
        """Return the variable and the recording, not started, that the first line of a cell asks for.

        Raises:
            UsageError: an option is invalid.
        """
        try:
            asked = self.parse_args(shlex.split(line))
            if asked.name is not None and not asked.name.isidentifier():
                self.error(f"{asked.name!r} is not a name for a variable")
            return asked.name, record(
                asked.out,
                steps=asked.steps,
                warmup=asked.warmup,
                seconds=asked.seconds,
                sample_every_ms=asked.sample_every,
                trace=not asked.no_trace,
                for_epochs=asked.for_epochs,
            )
        except ValueError as error:  # a quotation mark without its pair
            self.error(str(error))
        except TfdoctorError as error:
            raise UsageError(str(error)) from None
