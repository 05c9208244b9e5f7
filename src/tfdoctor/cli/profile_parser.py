"""The command line of ``profile``, and that of ``try``: our options first, then the command to run or a recording.

As with Python itself, everything after ``script.py``, ``-m module`` or ``-- program`` belongs to the run.
"""

from pathlib import Path
from typing import Any

from typer.core import TyperCommand

SEPARATOR, MODULE = "--", "-m"

COMMAND = "tfdoctor.command"  # Entry of the context: the command is a program, not a script
RECORDING = "tfdoctor.recording"  # Entry of the context: the first argument is a recording


class ProfileCommand(TyperCommand):
    """Ends the options where Python would; a program is marked by the separator before it."""

    allow_interspersed_args = False  # what follows a script belongs to it
    named = "(SCRIPT | -m MODULE | -- PROGRAM)"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # typer has its own Context, or click's
        """Parse our options; the parser does not see what follows `-m module`."""
        own, module = self._own(args)
        rest = args[own:]
        if module:
            rest = [SEPARATOR, *rest]
        elif rest[:1] == [SEPARATOR]:
            ctx.meta[COMMAND] = True
        return super().parse_args(ctx, [*args[:own], *rest])

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:  # noqa: ANN401  # same
        """Return the usage line."""
        return ["[OPTIONS]", self.named, "[ARGS]..."]

    def _own(self, args: list[str]) -> tuple[int, bool]:
        """Return how many of the arguments are ours, and whether they end in a module name."""
        switches = (param for param in self.params if getattr(param, "is_flag", False))
        flags = {name for one in switches for name in (*one.opts, *one.secondary_opts)}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in (SEPARATOR, "-"):
            short = args[at].startswith(MODULE)
            complete = "=" in args[at] or args[at] in flags or (short and args[at] != MODULE)
            at += 1 if complete else 2
            if short:
                return at, at <= len(args)  # the parser refuses `-m` alone
        return at, False


class TryCommand(ProfileCommand):
    """Takes options after a recording too: what follows a script belongs to the script."""

    named = "(RECORDING | SCRIPT | -m MODULE | -- PROGRAM)"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - same
        """Parse our options, wherever they stand."""
        own, module = self._own(args)
        if not module and args[own : own + 1] and Path(args[own]).is_dir():
            ctx.meta[RECORDING] = ctx.allow_interspersed_args = True
            return super(ProfileCommand, self).parse_args(ctx, args)
        return super().parse_args(ctx, args)
