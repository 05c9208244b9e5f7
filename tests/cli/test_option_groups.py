"""Options in dataclasses are options of the command, whatever their group is called."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from tfdoctor.cli.option_groups import grouped


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="How wide.")]
    height: Annotated[int, typer.Option("--tall", help="How high.")] = 3


seen: list[object] = []


def draw(ctx: typer.Context, *, name: str, height: Size, bold: bool = False) -> None:
    """Draw it."""
    seen.append((ctx.info_name, name, height, bold))


def test_the_fields_of_a_group_are_options_and_arrive_as_the_group() -> None:
    app = typer.Typer()
    app.command()(grouped(draw))
    seen.clear()
    done = CliRunner().invoke(app, ["box", "--width", "4", "--tall", "9", "--bold"])
    assert done.exit_code == 0, done.output
    assert [one[1:] for one in seen if isinstance(one, tuple)] == [("box", Size(4, 9), True)]
    assert "How high." in CliRunner().invoke(app, ["--help"]).output


def test_a_field_without_a_default_is_required() -> None:
    app = typer.Typer()
    app.command()(grouped(draw))
    assert CliRunner().invoke(app, ["box"]).exit_code == 2
