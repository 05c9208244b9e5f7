"""Where in a file something failed."""

from pathlib import Path


def line_of(error: BaseException, path: Path) -> str:
    """Return the last line of this file that a failure passed through, as ``:12``; "" for none."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.lineno else ""
    lines, trace = [], error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).absolute() == path.absolute():
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f":{lines[-1]}" if lines else ""
