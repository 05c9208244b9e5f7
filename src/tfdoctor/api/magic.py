"""`%%tfdoctor` records a notebook cell and shows its report; `%load_ext tfdoctor` makes it known to IPython."""

import ast
import shlex
from collections.abc import Iterator
from types import CodeType
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser

from tfdoctor.api.run import Run, record
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.options import NUMBERS

HELP = """Record this cell, and show the report below it: where its time goes, and what slows its training steps.

The cell runs as usual, with its outputs and errors. Then a line says how many steps were traced and where the
recording is. After an error the report covers what came before it."""

AWAIT = "%%tfdoctor cannot run a cell with await: use `with tfdoctor.record():` around the training."

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
        for number, one in NUMBERS.items():
            says = one.says if one.default is None else f"{one.says.rstrip('.')} ({one.default})."
            add(one.flag, dest=number, type=int, default=one.default, metavar=one.metavar, help=says)
        seconds = "Trace for this long instead, for training without visible steps."
        add("--seconds", type=float, metavar="S", help=seconds)
        add("--no-trace", dest="trace", action="store_false", help="Record only where the time of the cell goes.")

    def error(self, message: str) -> NoReturn:
        """Raise what IPython shows as one line."""
        raise UsageError(f"%%tfdoctor: {message}; %%tfdoctor? lists the options.")

    def recording(self, line: str) -> tuple[str | None, Run]:
        """Return the variable and the recording, not started, that the first line of a cell asks for.

        Raises:
            UsageError: an option is invalid.
        """
        try:
            asked = vars(self.parse_args(shlex.split(line)))
            name, out = asked.pop("name"), asked.pop("out")
            if name is not None and not name.isidentifier():
                self.error(f"{name!r} is not a name for a variable")
            return name, record(out, **asked)
        except ValueError as error:  # a quotation mark without its pair
            self.error(str(error))
        except TfdoctorError as error:
            raise UsageError(str(error)) from None


class CellBody:
    """A cell without its first line, in the shell that runs it.

    Raises:
        UsageError: it cannot be run.
    """

    def __init__(self, shell: Any, text: str) -> None:  # noqa: ANN401  # IPython's
        if not text.strip():
            raise UsageError("%%tfdoctor has nothing to record: write the training below it.")
        self.shell = shell
        self.cell = shell.displayhook.exec_result  # the result of the whole cell
        code = shell.transform_cell(text)
        if shell.should_run_async(text, transformed_cell=code):
            raise UsageError(AWAIT)
        blank = text[: len(text) - len(text.lstrip())].count("\n")  # transform_cell drops them
        self.code = "\n" * (1 + blank) + code
        number = self.cell.execution_count or shell.execution_count
        raw = self.cell.info.raw_cell
        self.file: str = shell.compile.cache(self.code, number, raw_code=raw)

    def run(self, recording: Run) -> None:
        """Run it in a recording; show what it raises as IPython does, and let the cell fail by it."""
        parts: list[CodeType] = []
        try:
            parts += self._parts()
            with recording:
                for part in parts:
                    exec(part, self.shell.user_global_ns, self.shell.user_ns)  # noqa: S102  # the user's
        except BaseException as error:  # noqa: BLE001  # Ctrl-C and SystemExit end a cell too
            refused = isinstance(error, TfdoctorError) and recording.path is None
            raised = UsageError(str(error)) if refused else error
            self.cell.error_in_exec = raised
            inner = raised.__traceback__.tb_next if raised.__traceback__ else None  # without the frame of run()
            exits = isinstance(raised, SystemExit)
            self.shell.showtraceback(
                (type(raised), raised, inner), tb_offset=0, exception_only=exits, running_compiled_code=bool(parts)
            )

    def _parts(self) -> Iterator[CodeType]:
        """Yield the statements as code; a last expression without a semicolon is code of its own, and is shown."""
        compiled, file = self.shell.compile, self.file
        statements = self.shell.transform_ast(compiled.ast_parse(self.code, file)).body
        shown: list[ast.stmt] = []
        if statements and isinstance(last := statements[-1], ast.Expr):
            line = self.code.splitlines()[(last.end_lineno or 1) - 1].encode()
            if not line[last.end_col_offset :].lstrip().startswith(b";"):
                shown = [statements.pop()]
        yield compiled(ast.Module(statements, []), file, "exec")
        if shown:
            yield compiled(ast.Interactive(shown), file, "single")
