"""What shells complete in the arguments of commands, asked as the shells ask."""

from tests.cli.kit import *
from tfdoctor.rules import all_rules
from tfdoctor.terms.pages import built_in_pages


def offered(line: str) -> list[str]:
    """Return what bash gets for the last word of a command line."""
    asked = {"_TFDOCTOR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in asked.items():
            patch.setenv(name, value)
        return tfdoctor().stdout.split()


test_rules_and_formats_are_completed = Names(__file__, "completions").test({"offered": offered})


@each([str(Path(sys.executable).with_name("tfdoctor"))], [sys.executable, "-m", "tfdoctor"])
def test_a_shell_gets_its_function_of_the_name_of_the_program(command: list[str]) -> None:
    asked = {**os.environ, "_TFDOCTOR_COMPLETE": "source_bash"}
    done = subprocess.run(command, env=asked, capture_output=True, text=True, check=True)
    assert "_TFDOCTOR_COMPLETE=complete_bash" in done.stdout
    assert "python" not in done.stdout


def test_the_names_are_those_of_the_rules() -> None:
    assert [*built_in_pages()] == sorted(rule.name for rule in all_rules())
