"""What shells complete in the arguments of commands, asked as the shells ask."""

from tests.cli.kit import *
from tfdoctor.cli.options import rule_names
from tfdoctor.rules import all_rules


@cases(
    ("tfdoctor explain thread", ["thread-limit"]),
    ("tfdoctor report runs --select prec", ["precision"]),
    ("tfdoctor rules --ignore thread-limit,shared", ["thread-limit,shared-device"]),
    ("tfdoctor profile --format html,sar", ["html,sarif"]),
    ("tfdoctor diff a b --format html,m", ["html,md"]),
    ("tfdoctor try run --only thread", ["thread-limit"]),
    ("tfdoctor report runs --format html,htm", []),
    ("tfdoctor explain no-such", []),
)
def test_rules_and_formats_are_completed(line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bash asks for the last word of a command line."""
    asked = {"_TFDOCTOR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert tfdoctor().stdout.split() == offered


@each([str(Path(sys.executable).with_name("tfdoctor"))], [sys.executable, "-m", "tfdoctor"])
def test_a_shell_gets_its_function_of_the_name_of_the_program(command: list[str]) -> None:
    asked = {**os.environ, "_TFDOCTOR_COMPLETE": "source_bash"}
    done = subprocess.run(command, env=asked, capture_output=True, text=True, check=True)
    assert "_TFDOCTOR_COMPLETE=complete_bash" in done.stdout
    assert "python" not in done.stdout


def test_the_names_are_those_of_the_rules() -> None:
    assert rule_names() == sorted(rule.name for rule in all_rules())
