"""The command line: what it takes, and how it refuses."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tfdoctor
from tfdoctor import cli
from tfdoctor.cli.gates import exit_code
from tfdoctor.compare import baseline
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.recording import Recording
from tfdoctor.report.formats import render
from tfdoctor.rulebook.config import FailOn
from tfdoctor.rules import all_rules
from tfdoctor.stored.report import read, write
from tfdoctor.terms.verdict import Finding, Location, Remedy, Severity

SAMPLES = Path(__file__).parents[2] / "sample_traces"

HEAVY = {"google", "jinja2", "keras", "numpy", "plotly", "psutil", "rich", "tensorflow", "xprof"}
"""What `--help` and a wrong option must not wait for."""

TRUNCATED = b"\x0a\x80\x10\x12\x05/host\xff\x00\x81" + bytes(100)
"""The head of an XSpace: a plane of 2048 bytes, cut off."""


HELP = "(see `tfdoctor profile --help`)."


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, list(arguments))
    return result.exit_code, result.output


def test_the_version_is_printed() -> None:
    assert run("--version") == (0, f"tfdoctor {tfdoctor.__version__}\n")


@pytest.mark.parametrize("command", [(), ("profile",), ("report",)])
def test_help_is_given(command: tuple[str, ...]) -> None:
    code, output = run(*command, "--help")

    assert code == 0
    assert "Usage: " in output


def test_a_folder_for_reports_that_are_printed_is_refused(tmp_path: Path) -> None:
    code, output = run("report", "trace", "--format", "llm,github", "--out", str(tmp_path / "new"))

    assert code == 2
    assert "llm and github are printed" in " ".join(output.split())
    assert not (tmp_path / "new").exists()


def test_an_unknown_format_is_refused_and_the_known_ones_are_named() -> None:
    code, output = run("report", "trace", "--format", "html,pdf")

    assert code == 2
    assert "'pdf' is not one of github, gitlab, html, json, llm, md, sarif" in " ".join(output.split())


def test_the_page_is_opened_in_the_browser(tmp_path: Path) -> None:
    """A program that notes what it is asked to open stands in for the browser."""
    browser, asked = tmp_path / "browser", tmp_path / "asked"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{asked}"\n')
    browser.chmod(0o755)
    ran = opened(tmp_path, {"BROWSER": f"{browser} %s"})
    assert ran.returncode == 0
    assert asked.read_text().strip() == (tmp_path / "report.html").as_uri()


def test_where_there_is_no_browser_the_page_is_named(tmp_path: Path) -> None:
    ran = opened(tmp_path, {"BROWSER": str(tmp_path / "none"), "PATH": str(tmp_path)})
    assert ran.returncode == 0
    assert f"no browser was found: open {tmp_path / 'report.html'} yourself." in ran.stderr


def opened(folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Report on a sample with --open, in a process of its own."""
    sample = str(SAMPLES / "cpu-input-bound")
    command = [sys.executable, "-m", "tfdoctor", "report", sample, "--out", str(folder), "--open"]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_a_page_that_is_not_written_cannot_be_opened() -> None:
    code, output = run("report", str(SAMPLES / "cpu-input-bound"), "--open", "--format", "json")
    assert code == 2
    assert "--open opens the HTML report: add html" in " ".join(output.split())


@pytest.mark.parametrize("url", ["report.html", "javascript:alert(1)", "https:", "ftp://x.test/a"])
def test_a_link_that_is_no_web_address_is_refused(url: str) -> None:
    code, output = run("report", str(SAMPLES / "cpu-input-bound"), "--link", url)
    assert code == 2
    assert "is not a web address: write https://" in " ".join(output.split())


def test_the_markdown_report_links_to_the_page(tmp_path: Path) -> None:
    """Trap: a bracket in the address would end the link."""
    url = "https://ci.test/a(b)/report.html?x=1"
    code, _ = run(
        "report", str(SAMPLES / "cpu-input-bound"), "--link", url, "--format", "md", "--out", str(tmp_path)
    )
    assert code == 0
    assert "(https://ci.test/a%28b%29/report.html?x=1)" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("profile",),
        ("report",),
        ("diagnose", "trace"),
        ("report", "trace", "--fail-on", "always"),
        ("profile", "--steps", "0", "train.py"),
        ("profile", "--warmup", "-1", "train.py"),
        ("profile", "--unknown", "train.py"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments)

    assert code == 2
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--nope",), "no such option: --nope (see `tfdoctor --help`)."),
        (("nope",), "no such command 'nope' (see `tfdoctor --help`)."),
        (("report",), "missing argument 'PATH' (see `tfdoctor report --help`)."),
        (("report", "a", "b"), "got unexpected extra argument(s) (b) (see `tfdoctor report --help`)."),
        (("profile", "--zzzz", "x"), "no such option: --zzzz (see `tfdoctor profile --help`)."),
        (("profile", "--out"), "option '--out' requires an argument (see `tfdoctor profile --help`)."),
        (
            ("profile", "--steps", "abc", "t.py"),
            f"invalid value for '--steps': 'abc' is not a whole number of at least 1 {HELP}",
        ),
        (
            ("report", ""),
            (
                "invalid value for 'PATH': the path is empty: name one, or check the variable it is from (see "
                "`tfdoctor report --help`)."
            ),
        ),
        (
            ("profile", "--out", "/proc/nope", __file__),
            "/proc/nope cannot be written (a folder cannot be created there): choose another folder.",
        ),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_a_usage_error_is_one_sentence(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tfdoctor", *arguments])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"tfdoctor: {said}\n")


def test_without_arguments_the_help_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tfdoctor"])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Usage: ")


def test_one_blank_line_stands_before_the_files(tmp_path: Path) -> None:
    code, output = run("report", str(SAMPLES / "cpu-input-bound"), "--out", str(tmp_path))

    before, _, _ = output.partition("wrote ")
    assert code == 0
    assert before.endswith("\n\n")
    assert not before.endswith("\n\n\n")


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    code = "import sys, tfdoctor.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert HEAVY & set(child.stdout.split()) == set()


REPORTED = """
import sys
from tfdoctor import cli
from tfdoctor.trace import xprof

class Asked(xprof.Asked):
    def __init__(self, path):
        print("asked:", *{name.partition(".")[0] for name in sys.modules})
        super().__init__(path)

xprof.Asked = Asked
try:
    cli.main()
finally:
    print("done:", *{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("file_format", ["json", "html"])
def test_a_report_imports_what_it_needs_when_it_needs_it(tmp_path: Path, file_format: str) -> None:
    words = ("report", str(SAMPLES / "cpu-input-bound"), "--format", file_format, "--out", tmp_path)
    child = subprocess.run([sys.executable, "-c", REPORTED, *words], capture_output=True, text=True, check=True)
    lines = dict(line.split(": ", 1) for line in child.stdout.splitlines() if ": " in line)
    asked, done = set(lines["asked"].split()), set(lines["done"].split())
    page = {"jinja2"}

    assert asked & {"numpy", "plotly", "tensorflow", "libcst", *page} == set()
    assert done & {"plotly", "tensorflow", "libcst", *page} == (page if file_format == "html" else set())


def missing(folder: Path) -> Path:
    return folder / "nothing"


def empty(folder: Path) -> Path:
    return _file(folder, b"")


def truncated(folder: Path) -> Path:
    return _file(folder, TRUNCATED)


def compressed(folder: Path) -> Path:
    return _file(folder, gzip.compress(b"a trace", mtime=0))


def text(folder: Path) -> Path:
    return _file(folder, b"\nStep 1: loss 0.3\nStep 2: loss 0.2\n")


def noise(folder: Path) -> Path:
    return _file(folder, bytes(range(255, 0, -1)))


def directory_without_trace(folder: Path) -> Path:
    (folder / "logs" / "plugins" / "profile" / "run").mkdir(parents=True)
    return folder / "logs"


def directory_with_truncated_trace(folder: Path) -> Path:
    run = directory_without_trace(folder) / "plugins" / "profile" / "run"
    (run / "host.xplane.pb").write_bytes(TRUNCATED)
    return folder / "logs"


def unreadable(folder: Path) -> Path:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = _file(folder, TRUNCATED)
    path.chmod(0)
    return path


def _file(folder: Path, content: bytes) -> Path:
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "given",
    [
        missing,
        empty,
        truncated,
        compressed,
        text,
        noise,
        directory_without_trace,
        directory_with_truncated_trace,
        unreadable,
    ],
    ids=lambda given: given.__name__,
)
def test_what_cannot_be_reported_on_is_refused_in_one_line_and_left_alone(
    given: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    path = given(there)
    before = sorted(there.rglob("*"))
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "argv", ["tfdoctor", "report", str(path)])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    output = capsys.readouterr()
    assert ended.value.code == 2
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert output.err.startswith("tfdoctor: ")
    assert sorted(there.rglob("*")) == before
    assert list(here.iterdir()) == []


def test_a_full_disk_behind_the_output_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfdoctor", "report", str(SAMPLES / "cpu-input-bound")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--out", str(tmp_path), "--format", "json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("topic", "code"), [(Topic.RECORDING, 0), (Topic.INPUT, cli.FOUND)])
def test_a_remark_on_the_recording_is_no_finding(topic: Topic, code: int, tmp_path: Path) -> None:
    """No gate, no format for reviews, no baseline, no comparison and no report of an earlier version has it."""
    at = Location("input_bound.py", 47)
    fault = Finding(summary="x", evidence=(), remedies=(Remedy("y", at=at),), severity=Severity.CRITICAL)
    rule = replace(next(iter(all_rules())), topic=topic, own=True, check=lambda: fault, limits=None)
    recording = Recording.open(SAMPLES / "cpu-input-bound")
    diagnosis = diagnose(recording, [replace(rule, preconditions=())], "x", ask_xprof=False)
    found = bool(code)
    assert exit_code(diagnosis, FailOn.NOTE) == code
    for name in ("sarif", "gitlab"):
        assert (rule.name in render(name, diagnosis)) is found
    assert bool(diagnosis.entries) is found
    assert any(one.finding for one in diagnosis.results) is found
    assert ("x: y" in diagnosis.trust.reasons) is not found
    baseline.write(diagnosis, "train.py", tmp_path / "b.json")
    assert (rule.name in (tmp_path / "b.json").read_text()) is found
    earlier = json.loads(json.dumps(write(diagnosis)))
    earlier["results"][0] |= {"outcome": "finding", "severity": "critical"}
    assert exit_code(read(earlier, [rule]), FailOn.NOTE) == code


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str) -> None:
    """The shells call the program as this test does: by the variables that typer's scripts set."""
    asked = {
        "bash": {"COMP_WORDS": "tfdoctor rep", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "tfdoctor rep"},
        "fish": {"_TYPER_COMPLETE_ARGS": "tfdoctor rep", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = {**os.environ, **asked, "_TFDOCTOR_COMPLETE": f"complete_{shell}"}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'tfdoctor'; from tfdoctor.cli import main; main()"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert "report" in done.stdout


def test_a_report_in_a_named_folder_is_called_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap: the name followed what was read and not where it is written, so that --out could have either."""
    monkeypatch.chdir(tmp_path)
    (trace,) = (SAMPLES / "cpu-input-bound").rglob("*.xplane.pb")
    run("report", str(trace), "--out", "out", "--format", "json,md")
    run("report", str(trace), "--format", "json,md")
    run("report", str(SAMPLES / "cpu-input-bound"), "--out", "of-recording", "--format", "md")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*report.*")) == [
        "of-recording/report.md",
        "out/report.json",
        "out/report.md",
        "tfdoctor-report.json",
        "tfdoctor-report.md",
    ]
