"""The schedule of a trial and its result, with runs of a program whose savings are known."""

from tests.trial.kit import *


@contextmanager
def time_of_runs(machine: Machine) -> Iterator[list[float]]:
    """Let time pass only by the runs, slower ones longer; give when each began, in s."""
    now, began = [0.0], []

    def tick(seconds: float) -> None:
        began.append(now[0])
        now[0] += seconds * machine.factors.get(machine.order[-1], 1.0)

    machine.tick = tick
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: now[0]))
        yield began


def promising(name: str, share: float | None) -> Variant:
    saving = None if share is None else Saving(ms_per_step=10 * share, share=share, bound=Bound.EXPECTED, how="")
    return Variant(name, rules=(name,), promised=saving)


@cases((4, True), (3, False), (1, False))
def test_each_round_begins_and_ends_as_it_is_and_turns_around(
    at_once: int, *, all_by_turns: bool, clock: Tick
) -> None:
    """Its runs take turns where there is room for all; the first run shows what a run takes."""
    machine = Machine({"a": 0.7, "b": 0.9}, at_once=at_once, tick=clock)
    trials, _ = conduct(machine, "a", "b")
    assert machine.order[:9] == [AS_IS, AS_IS, "a", "b", AS_IS, AS_IS, "b", "a", AS_IS]
    assert (measured(trials, "a").difference, trials.runs) == (Difference.SAVES, len(machine.order))
    assert (trials.rounds_by_turns == trials.rounds) is all_by_turns


OTHER, FLIPS = plain("a", exact=False), plain("a", reorders=True)
FAILS = {"errors": {"b": "MemoryError: no"}}
RUN_OF_A = Machine({"a": 0.5}).run(Variant("a"), Enough())
CRASH = {"late": {"a": TrialRun(error="MemoryError: no", seconds=15)}}
INFINITE = {"late": {"a": replace(RUN_OF_A, finite=False)}}
LOST = {"late": {"a": replace(RUN_OF_A, state=TrainedState(20, "same", {1: 2.0, 2: math.nan, 3: 1.2}))}}
UNLIKE = {"late": {"a": replace(RUN_OF_A, state=TrainedState(20, "other", {1: 2.0, 2: 1.6, 3: 1.2}))}}
HALF = {"a": 0.5, "b": 0.8}
PAIR = {"a": 0.6, "b": 0.8}
A_OR_B = {"rivals": Order(relations=(Relation(Relationship.INSTEAD, "a", ("b",)),)).rivals}
TRIALS: dict[str, tuple[Sequence[Variant | str], Any, dict[str, Any]]] = {
    "changes that help are kept together": ("abc", {"a": 0.7, "c": 0.8}, {}),
    "a clearly worse one is dropped after two rounds that agree": ("ab", {"a": 1.5, "b": 0.9}, {}),
    "a crash is a result and not run again": ("ba", {"a": 0.8}, FAILS),
    "a crash leaves no figure that comes later": ("ab", HALF, CRASH),
    "a crash of a change of the arithmetic leaves none": ([OTHER, "b"], HALF, CRASH),
    "updates cannot be counted": ("a", HALF, {"uncounted": "a"}),
    "one adds nothing beside another": ("ba", {**PAIR, "b + a": 0.6}, {}),
    "a set trains otherwise": ("ab", {"a": 0.6, "b": 0.7}, {"digests": {"a + b": "other"}}),
    "other weights": ("ab", HALF, {"digests": {"a": "other"}}),
    "one run of several becomes infinite": ("ab", HALF, INFINITE),
    "one run of several loses its loss": ("ab", HALF, LOST),
    "one run of several has other weights": ("ab", HALF, UNLIKE),
    "what becomes infinite gets no more rounds": ("a", HALF, {"between": 0.1, **INFINITE}),
    "NaN is no fault of a change where it is as it is": ("a", HALF, {"finite": False}),
    # The program repeats bit by bit, the change does not, and its losses hardly move.
    "a parallel map": ([FLIPS, "b"], PAIR, {"digests": {"a": "*", "a + b": "*"}}),
    "a change of the arithmetic shows its losses": ([OTHER], HALF, {"digests": {"a": "other"}}),
    "of rivals the faster one is kept": ("abc", {"a": 0.8, "b": 0.7, "c": 0.9}, A_OR_B),
    # Alone `a` saves more than `b`, together with `c` less.
    "the sets decide": ("abc", {"a": 0.6, "b": 0.65, "c": 0.9, "a + c": 0.8, "b + c": 0.6}, A_OR_B),
    "the runs of a round take turns where there is room": ("ab", {"a": 0.7, "b": 0.8}, {"at_once": 4}),
}


def test_what_a_trial_tells_and_keeps(clock: Tick, golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, (variants, factors, made) in TRIALS.items():
        excluding = made.get("rivals", frozenset())
        machine = Machine(factors, **{key: value for key, value in made.items() if key != "rivals"}, tick=clock)
        trials, kept = conduct(machine, *variants, rivals=excluding)
        assert not (excluding and "a + b" in machine.order)  # rivals are never made together
        lines = [f"keeps {', '.join(kept) or 'nothing'}; together: {trials.together or 'nothing'}"]
        lines += ["; ".join(told_of(one, machine.order.count(one.name))) for one in trials.rows]
        texts.append("".join(f"{line}\n" for line in (f"## {name}", "", *lines)))
    golden("trials.txt", "\n".join(texts))


def told_of(row: Trial, runs: int) -> Iterator[str]:
    yield f"{row.name} ran {runs if runs < LEAST_ROUNDS else 'more than two'} times"
    if row.measured:
        yield row.measured.difference
    if beside := row.beside:
        word = "instead of" if beside.instead else "beside"
        yield f"{word} {' and '.join(beside.others)}: {beside.measured.difference}"
    if row.training:
        yield f"training: {row.training.state}{', losses' if row.training.losses else ''}"
        yield from (f"{step}: {own:g} for {as_is:g}" for step, as_is, own in row.training.losses[:1])
    if row.missing:
        yield f"missing: {row.missing}"


@given(
    minutes=st.floats(0.5, 30),
    seconds=st.floats(5, 120),
    slower=st.lists(st.floats(0.2, 3), min_size=1, max_size=8),
    between=st.floats(0, 0.1),
)
@settings(deadline=None, max_examples=20)
def test_no_run_begins_after_the_minutes_are_over(
    minutes: float, seconds: float, slower: list[float], between: float
) -> None:
    machine = Machine({f"v{n}": factor for n, factor in enumerate(slower)}, seconds=seconds, between=between)
    with time_of_runs(machine) as began:
        conduct(machine, *machine.factors, minutes=minutes)
    assert all(start <= 60 * minutes for start in began)


@dataclass(slots=True)
class Watched(Runs):
    """Runs that check each round before it begins: nobody is ahead of one who still could get a figure."""

    all: Sequence[Variant] = ()
    begun: list[str] = dataclasses.field(default_factory=list)

    def round(self, variants: Sequence[Variant]) -> None:
        waiting = [one for one in self.all if not self.done(one.name) and one.name not in self.why]
        two_rounds = FEWEST_ROUNDS * (AROUND + 1)
        if self.clock.affordable() >= two_rounds:
            for one in variants:
                behind = [other for other in waiting if bool(other.model) <= bool(one.model)]
                assert not (self.done(one.name) and behind), f"{one} has a round before {behind}"
        if any(one.model for one in variants):
            assert not [one for one in waiting if not one.model]
        self.begun += [one.name for one in variants if one.name not in self.begun]
        Runs.round(self, variants)


@given(
    kinds=st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 0.9)), st.booleans()), min_size=1, max_size=12),
    slower=st.lists(st.floats(0.2, 3), min_size=12, max_size=12),
    failing=st.sets(st.integers(0, 11), max_size=3),
    runs=st.floats(2, 60),
    seconds=st.floats(5, 60),
)
@settings(deadline=None, max_examples=20)
def test_no_change_gets_a_second_round_while_another_has_none(
    kinds: list[tuple[float | None, bool]], slower: list[float], failing: set[int], runs: float, seconds: float
) -> None:
    """Those that change the model have none before all others had one, whatever runs take and however many fail."""
    variants = [
        replace(promising(f"v{n}", share), model="a wider layer" if model else "")
        for n, (share, model) in enumerate(kinds)
    ]
    factors = {f"v{n}": factor for n, factor in enumerate(slower)}
    machine = Machine(factors, seconds=seconds, errors=dict.fromkeys((f"v{n}" for n in failing), "MemoryError"))
    with time_of_runs(machine):
        watched = Watched(stage_of(machine), TrialClock(runs * seconds / 60), str, all=variants)
        watched.first()
        first_rounds(watched, variants)
        narrow(watched, variants)
    assert watched.begun == [one.name for one in by_promise(variants)][: len(watched.begun)]


@given(
    promises=st.lists(st.one_of(st.none(), st.floats(0, 0.9)), min_size=1, max_size=12),
    seconds=st.floats(5, 60),
    spare=st.floats(0, 5),
)
@settings(deadline=None, max_examples=20)
def test_time_for_two_rounds_gives_each_change_a_figure(
    promises: list[float | None], seconds: float, spare: float
) -> None:
    """The plan of a run is 6 s of steps or more, so the first estimates of its time are too long by up to that."""
    variants = [promising(f"v{n}", share) for n, share in enumerate(promises)]
    needed_s = (seconds + 6.3) * (1 + 2 * (len(variants) + 2) + 1)
    machine = Machine({}, seconds=seconds)
    with time_of_runs(machine):
        trials, _ = conduct(machine, *variants, minutes=needed_s / 60 + spare)
    assert all(one.measured for one in trials.rows if not one.parts)


@cases(
    (1, "its two rounds did not fit into one minute"),
    (4 / 3, "its two rounds did not fit into the 1.33 minutes"),
    (2.5, "only one round fitted into the 2.5 minutes, and a figure needs two"),
    (2.5, "its two rounds did not fit into the 2.5 minutes"),
)
def test_why_a_change_has_no_figure_is_true(minutes: float, told: str, clock: Tick) -> None:
    machine = Machine({}, seconds=12, tick=clock)
    trials, _ = conduct(machine, *(f"v{n}" for n in range(9)), minutes=minutes)
    assert f"{told}: allow more with --minutes" in {one.missing for one in trials.rows if not one.measured}


def test_what_the_user_names_comes_before_what_the_report_promises() -> None:
    variants = [promising("unknown", None), promising("large", 0.6), Variant("mine.diff")]
    assert [one.name for one in by_promise(variants)] == ["mine.diff", "large", "unknown"]


def test_equal_programs_are_not_claimed_to_differ_by_a_whole_trial() -> None:
    """The schedule looks at the figures to decide on further rounds; that must not make claims."""
    claims = 0
    for seed in range(40):
        machine = Machine({}, between=0.02, random=np.random.default_rng(seed))
        with time_of_runs(machine):
            trials, _ = conduct(machine, "a", "b", "c", minutes=15)
        claims += any(one.measured and one.measured.difference is not Difference.NONE for one in trials.rows)
    assert claims <= 2


def test_a_change_that_trains_otherwise_is_timed_to_the_end(clock: Tick) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, digests={"a": "other"}, between=0.1, tick=clock)
    trials, kept = conduct(machine, "a", "b", minutes=10)
    assert len(measured(trials, "a").rounds) == trials.rounds > LEAST_ROUNDS
    assert kept == ["b"]


@cases(("ValueError: x", "ValueError: x"), ("EOFError: EOF when reading a line", "without a terminal"))
def test_a_program_that_fails_as_it_is_stops_the_trial(error: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        conduct(Machine({}, errors={AS_IS: error}), "a")


def test_the_first_run_may_take_as_long_as_the_trial(clock: Tick) -> None:
    limits = []

    def run(_: Variant, enough: Enough) -> TrialRun:
        limits.append(enough.limit_s)
        clock(enough.limit_s)
        return TrialRun(why="the run took too long", error="the run took too long", seconds=enough.limit_s)

    with pytest.raises(CaptureError, match=r"within 20 minutes: allow more with --minutes\.$"):
        conduct(SimpleNamespace(run=run, at_once=1), "a", minutes=20.0)
    assert limits == [1200.0]


@cases((3, None), (7, 1), (8, 2))
def test_ctrl_c_returns_what_was_measured(at_run: int, rounds: int | None, clock: Tick) -> None:
    """Before a round has ended, it is an error; a change without a figure blames no time."""
    machine = Machine({"a": 0.7})

    def tick(seconds: float) -> None:
        clock(seconds)
        if len(machine.order) == at_run:
            raise KeyboardInterrupt

    machine.tick = tick
    if rounds is None:
        with pytest.raises(InterruptedTrialError) as caught:
            conduct(machine, "a")
        assert caught.value.exit_code == 130
        return
    trials, _ = conduct(machine, "a")
    assert (trials.ended_early, trials.rounds) == (True, rounds)
    if rounds == 1:
        assert row(trials, "a").missing == "the trial was interrupted before its second round had ended"
    else:
        assert measured(trials, "a").share == pytest.approx(0.3, abs=0.05)


def test_the_step_that_is_shown_is_that_of_the_program(clock: Tick) -> None:
    """A step of a GAN updates weights twice: half of its time is not its step."""
    trials, _ = conduct(Machine({"a": 0.5}, updates=2, tick=clock), "a")
    assert (trials.as_is_ms, row(trials, "a").step_ms) == pytest.approx((10.0, 5.0), rel=0.05)


def test_too_few_minutes_are_told_before_the_rounds_with_how_many_would_do(clock: Tick) -> None:
    def told(minutes: float) -> list[str]:
        said = list[str]()
        conduct(Machine({}, seconds=12, tick=clock), "a", "b", minutes=minutes, say=said.append)
        assert not any("unlikely" in one for one in said[2:])
        return said[1:2]  # after the first run, which shows how long a run is

    (short,) = told(1.5)
    start, _, advice = short.partition("so a result is unlikely: ")
    assert start == "1.5 minutes allow five more runs, and three rounds of each of two changes need 12, "
    assert "so a clear result is unlikely" in told(2.6)[0]
    enough = float(advice.removeprefix("--minutes ").removesuffix(" would do"))
    assert "unlikely" not in told(enough)[0]
    assert "unlikely" in told(enough / 2)[0]


@cases((AS_IS, False), ("a", True))
def test_what_fails_beside_others_runs_alone(failing: str, *, by_turns: bool, clock: Tick) -> None:
    """As it needs a port, or a file that it locks: where that is so as it is, no further round takes turns."""
    machine, sizes = Machine({"a": 0.7}, tick=clock), list[int]()
    stage: Any = stage_of(machine)

    def runs(variants: Sequence[Variant], enough: Enough) -> Sequence[TrialRun]:
        sizes.append(len(variants))
        failed, beside = TrialRun(why="no port", error="no port", seconds=2.0), len(variants) > 1
        return [failed if beside and one.name == failing else machine.run(one, enough) for one in variants]

    stage.runs, machine.at_once = runs, 9
    found = trial.conduct(stage, trial.Agenda([plain("a")], join, 60.0))[0]
    assert measured(found, "a").difference is Difference.SAVES
    assert found.rounds > 1
    assert found.rounds_by_turns == (found.rounds if by_turns else 0)
    assert by_turns or sum(size > 1 for size in sizes) == 1


def test_a_round_by_turns_without_a_figure_counts_as_none(clock: Tick) -> None:
    """The program as it is trains too few steps in its second round."""
    few = TrialRun(why="only 3 steps came after the warm-up", seconds=15.0)
    machine = Machine({"a": 0.7}, tick=clock, at_once=9, late={AS_IS: few})
    trials, _ = conduct(machine, "a")
    assert machine.order[:4] == [AS_IS, AS_IS, "a", AS_IS]
    assert trials.rounds_by_turns == trials.rounds > 0
