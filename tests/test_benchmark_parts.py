"""What all benchmarks share: commands in a quiet environment, turns, passages of pages."""

from benchmarks import commands, pages, trying, turns
from tests.kit import *

FAILS = "import sys; print('said'); sys.exit('the reason')"


def test_a_command_runs_without_gpus_and_with_its_own_variables() -> None:
    script = "import os, json; print(json.dumps([os.environ['CUDA_VISIBLE_DEVICES'], os.environ['MORE']]))"
    said = commands.output(sys.executable, "-c", script, variables={"MORE": "1"})
    assert json.loads(said) == ["", "1"]


def test_a_command_that_fails_ends_the_benchmark_with_its_reason() -> None:
    with pytest.raises(SystemExit, match=r"exit code 1\nthe reason"):
        commands.output(sys.executable, "-c", FAILS)
    done = commands.ended(sys.executable, "-c", FAILS)
    assert (done.returncode, done.stdout) == (1, "said\n")
    unread = commands.ended(sys.executable, "-c", FAILS, read=False)
    assert unread.returncode == 1
    assert not unread.stdout


def test_calls_take_turns_and_the_first_ones_do_not_count() -> None:
    called: list[str] = []
    runs = [lambda: called.append("a"), lambda: called.append("b")]
    rounds = turns.by_turns(runs, 2)
    assert called == ["a", "b"] * 3
    assert [len(times) for times in rounds] == [2, 2]
    assert len(turns.typical(runs, 3)) == 2


def test_only_the_marked_passage_of_a_page_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "EXPLANATIONS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- a -->\nold\n<!-- /a -->\n<!-- b -->\nold\n<!-- /b -->\n")
    pages.fill("page.md", "a", pages.table(("x", "y"), [(r"\1", "2")]))
    filled = "<!-- a -->\n| x | y |\n| --- | --- |\n| \\1 | 2 |\n<!-- /a -->\n"
    assert page.read_text() == f"{filled}<!-- b -->\nold\n<!-- /b -->\n"


def test_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["patches", "one"])
    assert list(trying.chosen("", "KIND", ["one", "two"], 4.0).names) == ["one"]
    monkeypatch.setattr(sys, "argv", ["patches"])
    assert list(trying.chosen("", "KIND", ["one", "two"], 4.0).names) == ["one", "two"]
    monkeypatch.setattr(sys, "argv", ["patches", "three"])
    with pytest.raises(SystemExit):
        trying.chosen("", "KIND", ["one", "two"], 4.0)
    assert "no such name: three" in capsys.readouterr().err
