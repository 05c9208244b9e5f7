"""The command line of ``profile``: our options first, then whatever belongs to the run.

``profile script.py …``, ``profile -m module …`` and ``profile -- program …``: as with Python itself, all
that follows is the run's own and never looked at.
"""

from typing import Any

from typer.core import TyperCommand

SEPARATOR, MODULE = "--", "-m"

COMMAND = "tfdoctor.command"
"""The entry of the context that says that a program is to be run, and no script."""


class ProfileCommand(TyperCommand):
    """Ends the options where Python would, and tells a program by the separator before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # typer has its own Context, or click's
        """Parse our options; what follows `-m module` is kept from the parser."""
        own, module = self._own(args)
        rest = args[own:]
        if module:
            rest = [SEPARATOR, *rest]
        elif rest[:1] == [SEPARATOR]:
            ctx.meta[COMMAND] = True
        return super().parse_args(ctx, [*args[:own], *rest])

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:  # noqa: ANN401  # same
        """Return what the usage line shows: three ways to name what is run."""
        return ["[OPTIONS]", "(SCRIPT | -m MODULE | -- PROGRAM)", "[ARGS]..."]

    def _own(self, args: list[str]) -> tuple[int, bool]:
        """Return how many of the arguments are ours, and whether the last of them names a module."""
        alone = {
            name for each in self.params if getattr(each, "is_flag", False) for name in each.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in (SEPARATOR, "-"):
            short = args[at].startswith(MODULE)
            complete = "=" in args[at] or args[at] in alone or (short and args[at] != MODULE)
            at += 1 if complete else 2
            if short:
                return at, at <= len(args)  # `-m` alone is the parser's to refuse
        return at, False
