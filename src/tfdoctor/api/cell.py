"""The part of a notebook cell below its first line, run as the cell itself: with its number, lines and outputs."""

import ast
from collections.abc import Iterator
from types import CodeType
from typing import Any

from IPython.core.error import UsageError

from tfdoctor.api.run import Run
from tfdoctor.terms.errors import TfdoctorError

AWAIT = "%%tfdoctor cannot run a cell with await: use `with tfdoctor.record():` around the training."


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
            self._fail(UsageError(str(error)) if refused else error, running=bool(parts))

    def _fail(self, error: BaseException, *, running: bool) -> None:
        trace = error.__traceback__
        self.cell.error_in_exec = error
        self.shell.showtraceback(
            (type(error), error, trace.tb_next if trace else None),  # without the frame of run()
            tb_offset=0,
            exception_only=isinstance(error, SystemExit),
            running_compiled_code=running,
        )

    def _parts(self) -> Iterator[CodeType]:
        """Yield the statements as code; a last expression is code of its own, which shows its value."""
        compiled, file = self.shell.compile, self.file
        statements = self.shell.transform_ast(compiled.ast_parse(self.code, file)).body
        shown = [last for last in statements[-1:] if self._shows(last)]
        yield compiled(ast.Module(statements[: len(statements) - len(shown)], []), file, "exec")
        if shown:
            yield compiled(ast.Interactive(shown), file, "single")

    def _shows(self, last: ast.stmt) -> bool:
        """Say whether it is an expression without a semicolon."""
        line = self.code.splitlines()[(last.end_lineno or 1) - 1].encode()
        rest = line[last.end_col_offset :].lstrip()
        return isinstance(last, ast.Expr) and not rest.startswith(b";")
