"""Fields of a group are options of the command, whatever their group is called, and arrive as the group."""

import inspect
from importlib import import_module

import typer
from typer.testing import CliRunner

from tests.cli.kit import *
from tfdoctor.cli import app as ours
from tfdoctor.cli import commands, options
from tfdoctor.cli.options import Group, argument, command, option


class Size(Group):
    width: int = option("How wide.", default=...)
    height: int = option("How high.", "--tall", default=3)


class Draw(Group):
    """Draw it."""

    ctx: typer.Context
    name: str = argument("NAME", "What.")
    height: Size
    bold: bool = option("In bold.", "--bold", default=False)


def draw(given: Draw) -> int:
    typer.echo(f"{given.name} {vars(given.height)} {given.bold}")
    return 3


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    app = typer.Typer()
    monkeypatch.setattr(options, "app", app)
    monkeypatch.setitem(sys.modules, "tfdoctor.cli.drawing", SimpleNamespace(draw=draw))
    command("draw", "Draw.", "drawing.draw")(Draw)
    return app


def test_the_fields_of_a_group_are_options_and_arrive_as_the_group(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["box", "--width", "4", "--tall", "9", "--bold"])
    assert (done.exit_code, done.output) == (3, "box {'width': 4, 'height': 9} True\n")
    assert "How high." in CliRunner().invoke(app, ["--help"]).output
    assert CliRunner().invoke(app, ["box"]).exit_code == 2  # without what has no default
    assert vars(Size(width=1)) == {"width": 1, "height": 3}


def test_the_work_of_each_command_takes_what_the_command_declares() -> None:
    """It is named by a text, so that it is imported when the command is called."""
    declared = [
        (kind.name, one.args[2].value)
        for kind in ast.parse(Path(commands.__file__).read_bytes()).body
        if isinstance(kind, ast.ClassDef)
        for one in kind.decorator_list
        if isinstance(one, ast.Call)
        and isinstance(one.args[2], ast.Constant)
        and isinstance(one.args[2].value, str)
    ]
    assert len(declared) == len(ours.registered_commands)
    for kind, work in declared:
        module, _, function = f"tfdoctor.cli.{work!s}".rpartition(".")
        (given,) = inspect.signature(getattr(import_module(module), function), eval_str=True).parameters.values()
        assert given.annotation is getattr(commands, kind)
