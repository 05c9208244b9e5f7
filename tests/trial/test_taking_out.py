"""The program without its parts: by steps or by whole runs, and never as a saving."""

from tests.trial.kit import *

LONG, SHORT = (3600.0, 10_000), (20.0, 500)
HERE = Location("train.py", 9)


def part(name: str, *, in_step: bool | None = True, share: float = 0.3, **changes: Any) -> Variant:
    taken = RunPart(**{"part": Part.CALLBACK, "name": name, "ms": 900.0, "at": HERE, "in_step": in_step, **changes})
    return Variant(name, without=taken, share=share)


def taken_out(machine: Any, *variants: Variant, recorded: Length = LONG) -> Trials:
    """Take parts out of a program, of which no more is asked than to run."""
    before = Trials(rows=(), runs=3, rounds=1, minutes=2.0)
    return taking_out.conduct(stage_of(machine), variants, recorded, 60.0, lambda _: None, before)


ERROR = "ValueError: min() of nothing"


class FailsAtTheEnd(Machine):
    """A run of steps ends before the script asks for what the part has left."""

    def run(self, variant: Variant, enough: Any) -> Any:
        run = super().run(variant, enough)
        return replace(run, error=ERROR) if enough.seconds > 1e6 and variant.name == "part" else run


@cases(
    (Machine({"part": 0.6}), LONG, True, False),
    (Program({"part": 0.6}), LONG, False, True),  # it comes between epochs
    (FailsAtTheEnd({"part": 0.6}), SHORT, None, False),
)
def test_a_part_is_measured_by_steps_or_by_whole_runs(
    machine: Any, recorded: Length, *, in_step: bool | None, of_run: bool, clock: Tick
) -> None:
    """It is added to a trial, and to none of its savings."""
    machine.tick = clock
    found = taken_out(machine, part("part", in_step=in_step), recorded=recorded)
    (row,) = found.parts
    seen = sure(row.measured)
    assert seen.low < 0.4 < seen.high
    assert (seen.of_run, seen.difference, row.share) == (of_run, Difference.SAVES, 0.3)
    assert row.without_ms == pytest.approx(0.6 * sure(row.as_is_ms), rel=0.02)
    assert (found.rows, found.together) == ((), "")
    if recorded is LONG:
        assert (found.runs, found.rounds) == (3 + len(machine.order), 1 + len(seen.rounds))


@cases(
    ("Curve", [f"the program fails without it ({ERROR})"]),
    (AS_IS, [f"from its start to its end as it is ({ERROR})", f"program failed when it ran as it is ({ERROR})"]),
)
def test_what_cannot_be_timed_has_a_row_that_says_why(failing: str, said: list[str], clock: Tick) -> None:
    parts = [part("Curve", in_step=False), part("Step")][: len(said)]
    found = taken_out(Program({}, errors={failing: ERROR}, tick=clock), *parts)
    assert [row.measured for row in found.parts] == [None] * len(said)
    assert all(words in row.missing for row, words in zip(found.parts, said, strict=True))


PARTS = st.lists(st.sampled_from([True, False, None]), max_size=6).map(
    lambda many: [part(f"part {n}", in_step=one) for n, one in enumerate(many)]
)


@given(PARTS, st.floats(1, 1e5), st.integers(0, 1000), st.floats(0.5, 100))
def test_each_part_is_measured_in_one_way(
    variants: list[Variant], seconds: float, steps: int, minutes: float
) -> None:
    of_runs, of_steps = taking_out.divided(variants, (seconds, steps), minutes)
    assert sorted(one.name for one in (*of_runs, *of_steps)) == [one.name for one in variants]
    known = [one for one in variants if sure(one.without).in_step is False]
    assert all(one in of_runs for one in known)
    if steps < LEAST_STEPS:
        assert not of_steps
    elif FEWEST_ROUNDS * (AROUND + len(variants)) * seconds > 60 * minutes:
        assert of_runs == known


def with_edit(topic: Topic, at: Location) -> Diagnosis:
    """Return a report whose only finding of the topic has an edit at a line."""
    made = finding("a", Remedy("x", edit=Edit(at, before="a", after="b")))
    return replace(full(), results=(replace(made, rule=replace(made.rule, topic=topic)),))


EMPTY = replace(full(), results=())
ELSEWHERE = Location("other.py", 1)


@cases(
    (part("a", share=0.2), EMPTY, True),
    (part("a", share=0.1), EMPTY, False),  # it is small
    (part("a"), with_edit(Topic.RUN, HERE), False),  # an edit at its line, or for its input
    (part("a", part=Part.INPUT, at=None), with_edit(Topic.INPUT, ELSEWHERE), False),
    (part("a"), with_edit(Topic.INPUT, ELSEWHERE), True),  # it mends another part
)
def test_a_large_part_that_no_finding_mends_is_tried(
    variant: Variant, diagnosis: Diagnosis, *, tried: bool
) -> None:
    assert taking_out.unexplained([variant], diagnosis) == ([variant] if tried else [])


def test_the_bound_of_the_input_is_that_of_its_rule() -> None:
    assert sure(taking_out.bound_of(full())).rule.name == taking_out.BOUND
    assert taking_out.bound_of(EMPTY) is None


@cases(
    ({}, True, True),
    ({"parts": True}, False, True),
    ({"parts": True, "only": ("cache-order",)}, True, False),
    ({"environment": ("A=1",)}, True, False),
)
def test_parts_are_tried_in_place_of_edits_where_they_are_asked_for(
    asked: dict[str, Any], *, edits: bool, nothing: bool
) -> None:
    request = Request(consent=lambda _: None, say=print, **asked)
    assert (request.tries_edits, request.names_nothing) == (edits, nothing)
