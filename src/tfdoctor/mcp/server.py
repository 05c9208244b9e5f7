"""The tools of the server, and how it is run; the official package ``mcp`` speaks the protocol."""

import json
import sys
from asyncio.subprocess import PIPE, STDOUT, create_subprocess_exec
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from tfdoctor import __version__
from tfdoctor.mcp.runs import ServedRuns, explained
from tfdoctor.terms.errors import InputError, TfdoctorError
from tfdoctor.terms.limits import why
from tfdoctor.terms.options import TRIAL_MINUTES

INSTRUCTIONS = (
    "tfdoctor finds what slows a TensorFlow or Keras training run, on which line, and what a change saves. Call "
    "list_runs, then get_report of a run; explain_rule says what a finding means, get_patch returns the edits. "
    "After a change, record again and call diff_runs. A saving is a prediction until `tfdoctor try` measured it."
)

MOST_MINUTES = 60


def server(runs: ServedRuns, *, allow_run: bool) -> MCPServer:
    """Return a server of these recordings; with ``allow_run`` it runs the user's programs, too."""
    made: MCPServer = MCPServer("tfdoctor", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

    @made.tool()
    def list_runs() -> str:
        """List the recordings, the newest first."""
        with telling():
            return runs.listed()

    @made.tool()
    async def get_report(run: str) -> str:
        """Report on a recording, by its path: where the time of the run and of a step goes, and what to change.

        At most 12,000 bytes.
        """
        return await _read(runs, "report", run)

    @made.tool()
    def explain_rule(rule: str) -> str:
        """Explain a rule by its name, such as input-bound: what it checks, why it matters, how to fix it."""
        with telling():
            return explained(rule)

    @made.tool()
    async def get_patch(run: str) -> str:
        """Return the changes of a report that can be applied automatically, as a diff for `git apply`."""
        return await _read(runs, "patch", run) or "No change can be applied automatically."

    @made.tool()
    async def diff_runs(before: str, after: str) -> str:
        """Compare two recordings of a program: the step, its parts and its findings."""
        return await _read(runs, "difference", before, after)

    if allow_run:
        _add_running(made, runs)
    return made


def _add_running(made: MCPServer, runs: ServedRuns) -> None:
    """Add the tools that run programs of the user's: only scripts in the folders, without a shell."""

    @made.tool()
    async def profile(script: str, out: str, arguments: list[str] | None = None) -> str:
        """Run a training script of the served folders, record it in the new folder `out`, and report."""
        with telling():
            program = runs.inside(script)
            if program.suffix != ".py" or not program.is_file():
                raise ToolError(f"{program} is no Python script")
            folder = runs.new(out)
        options = ("--quiet", "--no-report", "--out", str(folder))
        await _tfdoctor(program.parent, "profile", *options, str(program), *(arguments or ()))
        return await _read(runs, "report", str(folder))

    @made.tool(name="try")
    async def try_(run: str, minutes: float = TRIAL_MINUTES) -> str:
        """Measure what the changes of a recording save, by running its program with and without them."""
        if not 1 <= minutes <= MOST_MINUTES:
            raise ToolError(f"minutes are 1 to {MOST_MINUTES}")
        with telling():
            folder = runs.inside(run)
        await _tfdoctor(folder, "try", "--yes", "--minutes", str(minutes), str(folder))
        return await _read(runs, "report", run)


async def _read(runs: ServedRuns, method: str, *arguments: str) -> str:
    """Return the answer of a method of the runs, from a process that reads them within limits."""
    question = json.dumps([[*map(str, runs.folders)], method, arguments])
    code, said, error = await _ended("tfdoctor.mcp.runs", told=question)
    if code:
        raise ToolError(why(code) if code < 0 else error.strip().splitlines()[-1])
    return said


async def _tfdoctor(folder: Path, *words: str) -> None:
    """Run a command of tfdoctor; what it and the program print is told if it fails."""
    code, said, _ = await _ended("tfdoctor", *words, cwd=folder, errors=STDOUT)
    if code:
        raise ToolError(f"exit code {code}: {said[-2000:]}")


async def _ended(
    module: str, *words: str, told: str = "", cwd: Path | None = None, errors: int = PIPE
) -> tuple[int, str, str]:
    """Run a module of ours; return its exit code, its output and its errors."""
    process = await create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *words),  # -P: a tfdoctor.py may lie there
        cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=errors,
    )  # fmt: skip
    said, error = await process.communicate(told.encode())
    return process.returncode or 0, said.decode(errors="replace"), (error or b"").decode(errors="replace")


@contextmanager
def telling() -> Iterator[None]:
    """Turn an error of tfdoctor's into one that a model can read and act on."""
    try:
        yield
    except TfdoctorError as error:
        raise ToolError(str(error)) from error


def serve(folders: tuple[Path, ...], *, allow_run: bool) -> None:
    """Serve the recordings of these folders on the standard input and output until the client leaves.

    Raises:
        InputError: one of them is no folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder: name folders with recordings.")
    server(ServedRuns([folder.resolve() for folder in folders]), allow_run=allow_run).run("stdio")
