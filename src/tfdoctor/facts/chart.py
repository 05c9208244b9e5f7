"""Measures facts on demand, each one once."""

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType, TracebackType, UnionType
from typing import Any, TypeVar, cast, get_args

from tfdoctor.terms.record import Record

F = TypeVar("F")
R = TypeVar("R")


class Unavailable(Exception):  # noqa: N818 - it is an answer, not a fault
    """What a fact needs is missing; the message is the reason and, where there is one, the remedy."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        """Keep the remedy apart, so that nobody has to find it in the message."""
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


@cache
def needs(function: Callable[..., Any]) -> dict[str, type | UnionType]:
    """Return the parameters that the chart must supply, with their types; ``X | None`` is optional.

    A parameter with a default, such as a rule's limits, is not supplied.
    """
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {one.name: one.annotation for one in parameters if one.default is one.empty}


def kind_of(annotation: type | UnionType) -> type:
    """Return the fact that an annotation names: ``X``, ``X | None`` and ``X | Unavailable`` all name X."""
    kinds = [kind for kind in get_args(annotation) if kind not in (NoneType, Unavailable)]
    return cast("type", kinds[0] if kinds else annotation)


class Defect(Record):
    """A fact whose measurement failed although its input is there: a fault of tfdoctor."""

    fact: str
    error: str

    def __str__(self) -> str:
        return f"tfdoctor failed to measure {self.fact} ({self.error}): please report this defect"


class Chart:
    """The facts known about one recording, each measured once."""

    def __init__(self, given: Iterable[object], missing: dict[type, Unavailable] | None = None) -> None:
        """Start with the parts of a recording, and the reasons for those it lacks."""
        self._known: dict[type, object] = {type(part): part for part in given}
        self._known |= missing or {}
        self._failed: dict[type, tuple[Exception, TracebackType | None]] = {}  # with where it was first raised

    def fact(self, kind: type[F]) -> F:
        """Return the fact of this type, measuring it on first use.

        Raises:
            Unavailable: the recording does not contain what the fact needs.
            Exception: a defect of this fact, or of one that it needs; the same one each time.
        """
        if kind in self._failed:
            error, where = self._failed[kind]
            raise error.with_traceback(where)
        if kind not in self._known:
            # A fact that can only be given has ``ABSENT``: why it is not known, where it was not.
            absent, measured = getattr(kind, "ABSENT", None), cast("Any", kind)
            try:
                self._known[kind] = self.call(measured.measure) if absent is None else Unavailable(absent)
            except Unavailable as missing:
                self._known[kind] = missing
            except Exception as error:
                self._failed[kind] = error, error.__traceback__
                raise
        known = self._known[kind]
        if isinstance(known, Unavailable):
            raise known.with_traceback(None)
        return cast("F", known)

    def get(self, kind: type[F]) -> F | None:
        """Return the fact of this type, or None where it is unavailable or failed (``why_missing``)."""
        try:
            return self.fact(kind)
        except MemoryError:  # no defect, and no matter of one fact
            raise
        except Exception:  # noqa: BLE001 - unavailable, or a defect, which is kept and shown as such
            return None

    def why_missing(self, kind: type) -> str:
        """Return why a fact is unavailable or failed; "" where it is known."""
        try:
            self.fact(kind)
        except Unavailable as missing:
            return str(missing)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - same
            return str(self._defect(error))
        return ""

    def failed(self, kind: type) -> bool:
        """Return whether a fact failed when it was measured, or one that it needs did."""
        return kind in self._failed

    @property
    def defects(self) -> tuple[Defect, ...]:
        """The facts that failed so far, each once; facts that only need a failed one are left out."""
        errors = {id(error): error for error, _ in self._failed.values()}
        return tuple(self._defect(error) for error in errors.values())

    def call(self, function: Callable[..., R], *given: object) -> R:
        """Call a function with the facts its signature names; those that are given take precedence.

        An optional one may be None; one of ``X | Unavailable`` may be the reason for its absence.
        """
        return function(**self.supply(function, *given))

    def supply(self, function: Callable[..., Any], *given: object) -> dict[str, object]:
        """Return the facts that a function's signature names, by parameter, those given taking precedence.

        Raises:
            Unavailable: one that is not optional is missing.
        """
        parts = {type(part): part for part in given}
        facts: dict[str, object] = {}
        for name, annotation in needs(function).items():
            kind, answers = kind_of(annotation), get_args(annotation)
            try:
                facts[name] = parts[kind] if kind in parts else self.fact(kind)
            except Unavailable as missing:
                if Unavailable not in answers and NoneType not in answers:
                    raise
                facts[name] = missing if Unavailable in answers else None
        return facts

    def _defect(self, error: Exception) -> Defect:
        """Return a failure under the fact whose own measuring raised: the first that failed, for others met it."""
        origin = next(kind for kind, (failed, _) in self._failed.items() if failed is error)
        return Defect(origin.__name__, repr(error))
