"""Writes the types of a diagnosis as JSON and reads them again, by their annotations (see ``json_form``)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, IntEnum, StrEnum
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from tfdoctor.terms.json_form import Form, Json, Named, OmitDefault, OneUnit, expect, expect_number, number
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import Quantity
from tfdoctor.terms.verdict import Cell, Evidence, Location, Measure, Severity, Table

# How numbers and texts are read.
SCALARS: Mapping[type, Callable[[Json], object]] = MappingProxyType(
    {
        float: expect_number,
        int: lambda value: expect(value, int, "a whole number"),
        bool: lambda value: expect(value, bool, "true or false"),
        str: lambda value: expect(value, str, "a text"),
    }
)


def plain() -> Converter:
    """Return a converter that reads what `dataclasses.asdict` wrote: fields by their own names and types."""
    made = Converter()
    for kind, read in SCALARS.items():
        made.register_structure_hook(kind, _without_kind(read))
    made.register_structure_hook(StrEnum, _word)
    made.register_structure_hook(IntEnum, _word)
    return made


def converter() -> Converter:
    """Return a converter for the forms of a report; it takes no value for one of another kind."""
    made = plain()
    made.register_unstructure_hook(float, number)
    made.register_unstructure_hook(Severity, lambda severity: severity.name.lower())
    made.register_structure_hook(Severity, _without_kind(_severity))
    made.register_structure_hook(Phase, _without_kind(_phase))
    made.register_unstructure_hook_factory(_is_mapping, lambda kind: _sorted(kind, made))
    made.register_unstructure_hook_factory(is_dataclass, lambda kind: _writer(kind, made))
    made.register_structure_hook_factory(is_dataclass, lambda kind: _reader(kind, made))
    for union, read in {Cell: _cell, Evidence: _evidence}.items():
        made.register_structure_hook(union, _without_kind(partial(read, made)))
        made.register_unstructure_hook(union, made.unstructure)
    return made


def _is_mapping(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    return get_origin(kind) is Mapping


def _sorted(kind: Any, made: Converter) -> Callable[[Mapping[str, Any]], dict[str, Json]]:  # noqa: ANN401 - a mapping
    """Return what writes a mapping by its keys' order, which is that of the file: what is read has it too."""
    of = get_args(kind)[1]
    return lambda found: {key: made.unstructure(found[key], of) for key in sorted(found)}


def _cell(made: Converter, value: Json) -> Cell:
    if isinstance(value, str):
        return value
    kind: type = Quantity if "unit" in expect(value, Mapping, "a text or an object") else Location
    return cast("Cell", made.structure(value, kind))


def _evidence(made: Converter, value: Json) -> Evidence:
    kind: type = Table if "columns" in expect(value, Mapping, "an object") else Measure
    return cast("Evidence", made.structure(value, kind))


def markers(kind: type) -> Iterator[tuple[Field[Any], Any, tuple[Any, ...]]]:
    """Yield the fields of a dataclass, each with its type and the markers of its annotation."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            yield field, get_args(hint)[0], hint.__metadata__
        else:
            yield field, hint, ()


def form_of(marked: tuple[Any, ...]) -> Form | None:
    """Return the form among the markers of a field."""
    return next((one for one in marked if hasattr(one, "write")), None)


def has(marked: tuple[Any, ...], marker: type) -> bool:
    """Say whether a field has a marker."""
    return any(isinstance(one, marker) for one in marked)


def key_of(field: Field[Any], marked: tuple[Any, ...]) -> str:
    """Return the name of a field in the report."""
    return next((one.name for one in marked if isinstance(one, Named)), field.name)


def has_default(field: Field[Any]) -> bool:
    """Say whether a field may be missing."""
    return field.default is not MISSING or field.default_factory is not MISSING


def _overrides(kind: type, *, reads: bool) -> dict[str, Any]:
    found = {}
    for field, _, marked in markers(kind):
        form = form_of(marked)
        write = form.write if form else _amount if has(marked, OneUnit) else None
        found[field.name] = override(
            rename=key_of(field, marked),
            omit_if_default=has(marked, OmitDefault),
            unstruct_hook=None if reads else write,
            struct_hook=_reads(form) if form and reads else None,
        )
    return found


def _reads(form: Form) -> Callable[[Json, object], Any]:
    return _without_kind(form.read)


def _without_kind(read: Callable[[Json], Any]) -> Callable[[Json, object], Any]:
    """Return a function as the converter calls it: with the type, which it knows."""
    return lambda value, _: read(value)


def _amount(quantity: Quantity | None) -> float | None:
    return number(quantity.value) if quantity else None


def _writer(kind: type, made: Converter) -> Callable[[Any], dict[str, Json]]:
    write: Callable[[Any], dict[str, Json]] = make_dict_unstructure_fn(kind, made, **_overrides(kind, reads=False))
    shared = [field.name for field, _, marked in markers(kind) if has(marked, OneUnit)]
    if not shared:
        return write
    return lambda value: {**write(value), "unit": getattr(value, shared[0]).unit.value}


def _reader(kind: type, made: Converter) -> Callable[[Json, object], Any]:
    structure: Callable[[Json, Any], Any] = make_dict_structure_fn(kind, made, **_overrides(kind, reads=True))
    shared = {
        key_of(field, marked): has_default(field) for field, _, marked in markers(kind) if has(marked, OneUnit)
    }

    def read(value: Json, as_kind: Any) -> Any:  # noqa: ANN401 - the dataclass
        found = expect(value, Mapping, "an object")
        amounts = {
            key: {"value": found[key], "unit": found.get("unit")}
            for key, may_miss in shared.items()
            if key in found and not (may_miss and found[key] is None)
        }
        return structure({**found, **amounts} if amounts else found, as_kind)

    return read


def _word(value: Json, kind: type[Enum]) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"expected one of {', '.join(map(str, words_of(kind)))}") from None


FORMER = {"epochs' boundaries": Phase.BOUNDARIES}  # The names of phases in reports up to 0.2.0


def _phase(value: Json) -> Phase:
    """Return a phase of the run; one of a later version is unnamed here."""
    return Phase(value) if value in set(Phase) else FORMER.get(value, Phase.UNNAMED)


def _severity(value: Json) -> Severity:
    try:
        return Severity[expect(value, str, "a severity").upper()]
    except KeyError:
        raise ValueError(f"expected a severity, not {value!r}") from None


def words_of(kind: type[Enum]) -> list[Json]:
    """Return how the members of an enumeration stand in a report."""
    if issubclass(kind, Severity):
        return [member.name.lower() for member in kind]
    return [member.value for member in kind]
