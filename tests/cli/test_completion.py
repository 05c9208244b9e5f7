"""What shells complete in the arguments of commands, asked as the shells ask."""

from tests.cli.kit import *
from tfdoctor.cli.options import rule_names
from tfdoctor.rules import all_rules


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    monkeypatch.setenv("_TFDOCTOR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    return tfdoctor().stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tfdoctor explain thread", ["thread-limit"]),
        ("tfdoctor report runs --select prec", ["precision"]),
        ("tfdoctor rules --ignore thread-limit,shared", ["thread-limit,shared-device"]),
        ("tfdoctor profile --format html,sar", ["html,sarif"]),
        ("tfdoctor diff a b --format html,m", ["html,md"]),
        ("tfdoctor try run --only thread", ["thread-limit"]),
        ("tfdoctor report runs --format html,htm", []),
        ("tfdoctor explain no-such", []),
    ],
)
def test_rules_and_formats_are_completed(line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(line, monkeypatch) == offered


@pytest.mark.parametrize(
    "command", [[str(Path(sys.executable).with_name("tfdoctor"))], [sys.executable, "-m", "tfdoctor"]]
)
def test_a_shell_gets_its_function_of_the_name_of_the_program(command: list[str]) -> None:
    environment = {**os.environ, "_TFDOCTOR_COMPLETE": "source_bash"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "_TFDOCTOR_COMPLETE=complete_bash" in done.stdout
    assert "python" not in done.stdout


def test_the_names_are_those_of_the_rules() -> None:
    assert rule_names() == sorted(rule.name for rule in all_rules())
