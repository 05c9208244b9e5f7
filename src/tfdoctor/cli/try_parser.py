"""The command line of ``try``: that of ``profile``, or a recording with options on either side."""

from pathlib import Path
from typing import Any

from tfdoctor.cli.profile_parser import ProfileCommand

RECORDING = "tfdoctor.recording"
"""Entry of the context: the first argument is a recording."""


class TryCommand(ProfileCommand):
    """Takes options after a recording too: what follows a script belongs to the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above it
        """Parse our options, wherever they stand."""
        own, module = self._own(args)
        if not module and args[own : own + 1] and Path(args[own]).is_dir():
            ctx.meta[RECORDING] = ctx.allow_interspersed_args = True
            return super(ProfileCommand, self).parse_args(ctx, args)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:  # noqa: ANN401 - same
        """Return the usage line: a recording, or three ways to name the command to run."""
        return ["[OPTIONS]", "(RECORDING | SCRIPT | -m MODULE | -- PROGRAM)", "[ARGS]..."]
