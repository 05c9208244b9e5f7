"""The server as an assistant uses it: by the official client, over the standard input and output."""

import asyncio
from collections.abc import Awaitable

from mcp import ClientSession, StdioServerParameters, stdio_client

from tests.capture.running import SOURCES, environment
from tests.kit import *
from tfdoctor.mcp.runs import ServedRuns
from tfdoctor.report.formats import llm

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    for name in ("cpu-input-bound", "cpu-input-bound-fixed"):
        shutil.copytree(SAMPLES / name, served / name)
    (tmp_path / "outside").mkdir()
    shutil.copytree(SAMPLES / "cpu-input-bound", tmp_path / "outside" / "secret")
    (served / "link").symlink_to(tmp_path / "outside")
    (served / "train.py").write_text("import sys\nprint('ran with', sys.argv[1:])\n", "utf-8")
    return served


def served(folder: Path, told: Callable[[ClientSession], Awaitable[Any]], *options: str) -> Any:
    words = ["-m", "tfdoctor", "mcp", *options, str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment(PYTHONPATH=str(SOURCES)))

    async def run() -> Any:
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await told(session)

    return asyncio.run(run())


async def told(session: ClientSession, tool: str, *, fails: bool = False, **arguments: Any) -> str:
    """Return the answer of a tool, which fails or not."""
    answer = await session.call_tool(tool, arguments)
    text = "".join(getattr(part, "text", "") for part in answer.content)
    assert bool(answer.is_error) is fails, text
    return text


refused = partial(told, fails=True)


def test_an_assistant_reads_runs_and_nothing_else(folder: Path) -> None:
    async def asks(session: ClientSession) -> None:
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools == {"list_runs", "get_report", "explain_rule", "get_patch", "diff_runs"}

        runs = await told(session, "list_runs")
        assert (runs.count("cpu-input-bound"), "secret" in runs) == (2, False)
        report = await told(session, "get_report", run="cpu-input-bound")
        assert "waiting for input" in report
        assert len(report.encode()) <= llm.LIMIT
        assert "## Why it matters" in await told(session, "explain_rule", rule="input-bound")
        why = await refused(session, "explain_rule", rule="inputbound")
        assert why.endswith("unknown rule 'inputbound': did you mean 'input-bound'?")
        difference = await told(session, "diff_runs", before="cpu-input-bound", after="cpu-input-bound-fixed")
        assert "input_bound.py:" in difference  # as it is in the file system
        assert "input-bound" in difference
        assert not re.search("\u200b|&[a-z]+;", difference)
        for tool, path in (("get_report", "../outside/secret"), ("get_patch", "link/secret")):  # a process for each
            assert "is not in the folders of this server" in await refused(session, tool, run=path)
        await refused(session, "profile", script="train.py", out="new")

    served(folder, asks)


def test_only_where_it_is_allowed_a_script_is_run(folder: Path) -> None:
    (folder / "tfdoctor.py").write_text("raise SystemExit(9)\n")  # not what is run

    async def asks(session: ClientSession) -> None:
        words = ["; touch owned", "$(id)"]
        assert "train.py" in await told(session, "profile", script="train.py", out="new", arguments=words)
        for script, out in (("/bin/sh", "b"), ("../x.py", "b"), ("train.py", "new"), ("train.py", "../b")):
            assert "folders of this server" in await refused(session, "profile", script=script, out=out)
        assert (await refused(session, "try", run="new", minutes=1e9)).endswith("minutes are 1 to 60")

    served(folder, asks, "--allow-run")
    assert (folder / "new" / "tfdoctor.json").is_file()
    assert not list(folder.rglob("owned"))


def test_a_path_is_in_the_folders_or_an_error(folder: Path) -> None:
    runs = ServedRuns([folder.resolve()])
    assert runs.inside("cpu-input-bound") == folder.resolve() / "cpu-input-bound"
    outside = ("..", "../outside/secret", "link", "link/secret", str(folder.parent / "outside" / "secret"))
    for path in (*outside, "nowhere", "\0", "cpu-input-bound\0", "a" * 5000, "/etc", "/etc/passwd"):
        with pytest.raises(InputError, match="not in the folders"):
            runs.inside(path)


@each("plugins", "plugins/profile", "tfdoctor.json", "program.json.gz")
def test_nothing_behind_a_link_is_shown(name: str, folder: Path) -> None:
    secret = folder.parent / "outside" / "secret"
    for path in (secret / "tfdoctor.json", secret / "program.json.gz"):
        path.write_bytes(path.read_bytes().replace(b"input_bound.py", b"topsecret.py"))
    part = folder / "cpu-input-bound" / name  # a link to the same part of the recording outside
    part.rename(folder.parent / "replaced")
    part.symlink_to(secret / name)
    with contextlib.suppress(InputError):
        assert "topsecret" not in ServedRuns([folder.resolve()]).report("cpu-input-bound")


@each("processes", "processes/1")
def test_a_process_shows_nothing_of_its_run_outside(served: str, tmp_path: Path) -> None:
    """Its manifest and its samples lie in the folder of the run."""
    run = Path(shutil.copytree(SAMPLES / "cpu-outside-steps", tmp_path / "run"))
    process = run / "processes" / "1"
    process.mkdir(parents=True)
    (process / "agent.json").write_text("{}")
    for name in ("plugins", "run.jsonl"):
        (run / name).rename(process / name)
    folder = run / served
    with pytest.raises(InputError, match="not in the folders"):
        ServedRuns([folder.resolve()]).report("1" if served == "processes" else ".")
    assert ServedRuns([run.resolve()]).report("processes/1")


def test_the_newest_recording_below_a_folder_may_not_lie_elsewhere(folder: Path) -> None:
    (folder / "above").mkdir()
    (folder / "above" / "run").symlink_to(folder.parent / "outside" / "secret")
    with pytest.raises(InputError, match="not in the folders"):
        ServedRuns([folder.resolve()]).report("above")
