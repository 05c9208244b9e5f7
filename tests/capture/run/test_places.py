"""Numbers of places: the same for the same call, in order, and bounded."""

from tests.capture.run.kit import *

places = agent.load("run.places")


def test_the_same_call_has_one_number() -> None:
    known = places.CallSites()
    fit = known.of("fit", ("train.py", 3), "Model.fit", known.script)
    assert known.of("fit", ("train.py", 3), "Model.fit", known.script) is fit
    other = known.of("fit", ("train.py", 4), "Model.fit", known.script)
    within = known.of("fit", ("train.py", 3), "Model.fit", other)
    assert [place.number for place in known.new] == [0, 1, 2, 3]
    told = {"kind": "call", "id": 3, "call": "fit", "at": ("train.py", 3), "name": "Model.fit", "parent": 2}
    assert within.describe() == told


def test_places_of_another_recording_are_strangers() -> None:
    one, other = places.CallSites(), places.CallSites()
    place = one.of("fit", None, "", one.script)
    assert (place in one, place in other, one.script in other) == (True, False, False)


def test_where_there_are_too_many_places_later_ones_share_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST", 10)
    known = places.CallSites()
    parents: list[Any] = [known.script]
    for number in range(1000):
        parent = parents[number % 7 % len(parents)]
        parents.append(known.of("predict", ("train.py", number), f"f{number}", parent))
    assert len(known.made) <= 10 + 10
    assert parents[-1].at is None
    assert [place.number for place in known.made] == list(range(len(known.made)))
