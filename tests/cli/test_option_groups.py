"""Fields of a group are options of the command, whatever their group is called, and arrive as the group."""

import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from tfdoctor.cli import options
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


def test_a_field_without_a_default_is_required(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["box"]).exit_code == 2


def test_a_group_that_is_made_elsewhere_has_the_defaults() -> None:
    assert vars(Size(width=1)) == {"width": 1, "height": 3}
