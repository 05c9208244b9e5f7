"""Options that several commands share, or that belong together, as dataclasses: Typer sees their fields."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer whose parameters are the fields of those of this one that are dataclasses."""
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    groups = {name: hints[name] for name in parameters if is_dataclass(hints[name])}

    def flat(**given: object) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**given, **made)

    shown: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        alone = [parameter.replace(kind=KEYWORD, annotation=hints[name])]
        shown += _fields(groups[name]) if name in groups else alone
    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__annotations__ = {one.name: one.annotation for one in shown}
    flat.__dict__["__signature__"] = inspect.Signature(shown)  # what `inspect` returns of it
    return flat


def _fields(kind: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            KEYWORD,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
