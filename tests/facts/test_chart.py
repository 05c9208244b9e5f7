"""The chart supplies facts by annotation, measures each one once, and passes reasons on."""

from typing import Self

from tests.facts.kit import *
from tfdoctor.facts.chart import kind_of, needs


@dataclass(frozen=True)
class Given:
    number: int


@dataclass(frozen=True)
class Twice:
    number: int

    @classmethod
    def measure(cls, given: Given) -> Self:
        MEASURED.append(cls.__name__)
        return cls(given.number * 2)


@dataclass(frozen=True)
class Lacking:
    @classmethod
    def measure(cls, given: Given) -> Self:
        MEASURED.append(cls.__name__)
        raise Unavailable(f"{given.number} is not enough")


@dataclass(frozen=True)
class Broken:
    @classmethod
    def measure(cls) -> Self:
        raise ZeroDivisionError


MEASURED: list[str] = []


def both(twice: Twice, given: Given) -> int:
    return twice.number + given.number


def maybe(lacking: Lacking | None, twice: Twice | None) -> tuple[Lacking | None, Twice | None]:
    return lacking, twice


def certain(lacking: Lacking) -> Lacking:
    return lacking


def broken(fact: Broken | None) -> Broken | None:
    return fact


def test_facts_are_supplied_by_type_and_an_optional_one_may_be_missing() -> None:
    assert Chart([Given(3)]).call(both) == 9
    assert Chart([Given(3)]).call(maybe) == (None, Twice(6))


def test_a_fact_is_measured_once_and_a_reason_found_once_and_given_each_time() -> None:
    chart = Chart([Given(3)])
    MEASURED.clear()
    assert chart.fact(Twice) is chart.fact(Twice)
    for _ in range(2):
        with pytest.raises(Unavailable, match="3 is not enough"):
            chart.call(certain)
    assert MEASURED == ["Twice", "Lacking"]


def test_a_part_that_the_recording_lacks_comes_with_its_reason() -> None:
    with pytest.raises(Unavailable, match="nothing was given"):
        Chart([], missing={Given: Unavailable("nothing was given")}).fact(Twice)


def test_a_defect_is_never_taken_for_a_missing_fact() -> None:
    """Where it was first raised is told each time: the same frames, however often it is asked for."""
    chart, frames = Chart([]), []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            chart.call(broken)
        frames.append(len(caught.traceback))
    assert frames[1] == frames[2] <= frames[0] + 1


def test_what_a_function_needs() -> None:
    assert needs(both) == {"twice": Twice, "given": Given}
    assert [kind_of(kind) for kind in needs(maybe).values()] == [Lacking, Twice]
