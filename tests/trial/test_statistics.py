"""The interval of a saving: it holds the truth as often as it says, and nothing is claimed of equal programs."""

from tests.trial.kit import *


def step(step_ms: float, random: np.random.Generator, between: float = 0.02, within: float = 0.05) -> float:
    """Return the step of a run; runs differ by a share of `between`, blocks in one by `within`."""
    run = step_ms * np.exp(random.normal(0, between))
    return float(run * np.median(np.exp(random.normal(0, within, 20))))


def rounds(factors: Sequence[float], random: np.random.Generator, count: int = 3) -> list[Round]:
    """Return rounds of variants whose steps are these factors of the program's."""
    return [
        Round(step(10, random), step(10, random), {str(factor): step(10 * factor, random) for factor in factors})
        for _ in range(count)
    ]


def compared(made: list[Round], name: str, other: str = "") -> Measured:
    return sure(statistics.against(made, name, other) if other else statistics.saving(made, name))


@pytest.mark.parametrize("count", [2, 3, 5, 12])
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "slow runs"])
@pytest.mark.parametrize("own", [0.007, 0.02, 0.06])
def test_intervals_hold_however_much_the_runs_of_a_variant_differ(count: int, noise: str, own: float) -> None:
    """Runs as it is differ by 2 %, those of the variant by less, as much or more."""
    random = np.random.default_rng(8)

    def run(between: float) -> float:
        return math.exp(between * NOISE[noise](random))

    trials = [
        compared([Round(run(0.02), run(0.02), {"v": run(own)}) for _ in range(count)], "v") for _ in range(300)
    ]
    assert sum(one.low <= 0 <= one.high for one in trials) >= 0.92 * 300
    assert sum(one.difference in (Difference.SAVES, Difference.COSTS) for one in trials) <= 15


NOISE: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda random: random.normal(0, 1),
    "heavy tails": lambda random: random.standard_t(3) / 3**0.5,
    "slow runs": lambda random: random.normal(0, 1) + (random.random() < 0.1) * random.exponential(5),
}


def test_of_many_equal_variants_none_is_claimed_to_differ() -> None:
    random, names, claims = np.random.default_rng(9), [str(n) for n in range(10)], 0
    for _ in range(100):
        runs = [[step(10, random) for _ in range(12)] for _ in range(4)]
        made = [Round(before, after, dict(zip(names, own, strict=True))) for before, after, *own in runs]
        found = [statistics.saving(made, name, chances=len(names)) for name in names]
        claims += any(one is not None and one.difference is not Difference.NONE for one in found)
    assert claims <= 5


@cases((1, 0.05, 12.706), (2, 0.05, 4.303), (10, 0.01, 3.169), (30, 0.05, 2.042), (1000, 0.05, 1.962))
def test_quantiles_are_those_of_printed_tables(freedom: int, outside: float, printed: float) -> None:
    assert student_t.student(freedom, outside) == pytest.approx(printed, abs=0.001)


def test_two_variants_are_compared_in_the_rounds_that_have_both() -> None:
    random = np.random.default_rng(10)
    made = [*rounds([0.8, 0.6], random, 4), *rounds([0.8], random, 2)]
    found = compared(made, "0.6", "0.8")
    assert (len(found.rounds), found.difference) == (4, Difference.SAVES)
    assert found.low <= 0.25 <= found.high


def test_one_round_has_no_figure() -> None:
    made = rounds([0.5], np.random.default_rng(11), 1)
    figures = [statistics.saving(made, "0.5"), statistics.saving(made, "other"), statistics.drift(made)]
    assert figures == [None] * 3


@cases(
    (0.6, 0.02, Difference.SAVES),
    (1.6, 0.02, Difference.COSTS),
    (1.0, 0.02, Difference.NONE),
    (1.0, 0.5, Difference.UNKNOWN),
)
def test_what_a_trial_shows(factor: float, between: float, difference: Difference) -> None:
    run = partial(step, random=np.random.default_rng(3), between=between)
    found = compared([Round(run(10), run(10), {"v": run(10 * factor)}) for _ in range(3)], "v")
    assert found.difference is difference
    if difference is not Difference.UNKNOWN:
        assert found.share == pytest.approx(1 - factor, abs=0.06)
        assert (found.high - found.low) / 2 <= 0.12


# Of rounds: as it is, the variant, as it is
LOGS = st.lists(st.tuples(*[st.floats(-1.0, 1.0)] * 3), min_size=2, max_size=8)


@given(LOGS, st.sampled_from([1.0, 0.1, 0.01, 0.001]), st.floats(-0.1, 0.1), st.floats(-0.05, 0.05))
def test_what_is_said_follows_from_the_interval_that_is_shown(
    logs: list[tuple[float, float, float]], scale: float, effect: float, drifting: float
) -> None:
    """In the figures, and as they are printed, of savings and of the program against itself."""
    made = []
    for before, own, after in logs:
        times = np.exp((scale * before, scale * after + drifting, scale * own + effect, scale * after)).tolist()
        made.append(Round(times[0], times[1], {"v": times[2], "w": times[3]}))
    pair, control = (compared(made, "v"), compared(made, "v", "w")), sure(statistics.drift(made))
    for one in (*pair, control):
        printed = re.search(r"\((\S+) to (\S+) %\)", saved(one).replace(MINUS, "-"))
        ends = [float(end) for end in printed.groups()] if printed else []
        holds = {
            Difference.SAVES: min([one.low, *ends]) > 0,
            Difference.COSTS: max([one.high, *ends]) < 0,
            Difference.NONE: one.low <= 0 <= one.high and min(ends, default=1) <= 0 <= max(ends, default=-1),
            Difference.UNKNOWN: not ends,
        }
        assert holds[one.difference]
        assert bool(ends) is (one.difference is not Difference.UNKNOWN)
    if not control.low <= 0 <= control.high:
        assert "the machine changed meanwhile" in against_itself(control)
        for one in pair:
            half = float(np.log((1 - one.low) / (1 - one.high))) / 2
            assert half >= abs(np.log1p(-control.share)) - statistics.ZERO


def test_a_control_whose_interval_excludes_zero_widens_all_others() -> None:
    """The last run of a round is 1.9 % faster than the first (0.2 to 3.5 %): what is smaller is no saving."""
    logs = (-0.0125, -0.0193, -0.0260)
    made = [Round(1.0, math.exp(log), {"v": math.exp(log / 2 - 0.01), "w": math.exp(log / 2)}) for log in logs]
    control = sure(statistics.drift(made))
    assert (control.low, control.high) == pytest.approx((0.0025, 0.0354), abs=1e-4)
    assert control.difference is Difference.SAVES
    for one in (compared(made, "v"), compared(made, "v", "w")):
        assert one.share == pytest.approx(0.01, abs=1e-4)
        assert (one.difference, one.low < -0.009) == (Difference.NONE, True)


@given(st.floats(1.0, 100.0), st.floats(0.1, 10.0), st.floats(0.01, 100.0))
def test_figures_do_not_depend_on_the_unit(own: float, factor: float, unit: float) -> None:
    """Times in other units, or on a machine that is slower in everything, give the same ratios."""

    def made(scale: float) -> list[Round]:
        return [Round(scale * own, scale * own, {"v": scale * factor * own})] * 3

    here, there = compared(made(1.0), "v"), compared(made(unit), "v")
    assert here.share == pytest.approx(1 - factor)
    assert (there.share, there.low, there.high) == pytest.approx((here.share, here.low, here.high), abs=1e-9)
    assert here.low <= here.share <= here.high


def run_with_pauses(
    step_ms: float, random: np.random.Generator, every_s: float, burst_ms: float = 0.0
) -> tuple[float, float]:
    """Return the step of a run of 6 s, typical and mean: the machine pauses, and each 400th step does more."""
    steps = int(6000 / (step_ms + burst_ms / 400))
    spans = step_ms * np.exp(random.normal(0, 0.02)) * np.exp(random.normal(0, 0.1, steps))
    spans[int(random.integers(400)) :: 400] += burst_ms
    pauses = random.poisson(spans.sum() / 1e3 / every_s)
    spans[random.integers(steps, size=pauses)] += random.exponential(200, pauses)
    return float(np.median([part.mean() for part in np.array_split(spans, 20)])), float(spans.mean())


def trial_with_pauses(step_ms: float, seed: int, every_s: float, burst_ms: float = 0.0, count: int = 3) -> Measured:
    random, made = np.random.default_rng(seed), []
    for _ in range(count):
        before, after = (run_with_pauses(7, random, every_s) for _ in range(2))
        own = run_with_pauses(step_ms, random, every_s, burst_ms)
        typical, mean = (Round(before[at], after[at], {"v": own[at]}) for at in (0, 1))
        made.append(replace(typical, whole=mean))
    return compared(made, "v")


def test_work_that_is_moved_into_bursts_is_no_saving() -> None:
    """6 ms a step in place of 2.4 s every 400 steps: the typical step is shorter, the training is not."""
    for seed in range(20):
        found = trial_with_pauses(1, seed, 5.0, 2400)
        assert found.difference is not Difference.SAVES or found.share < 0.4
        assert "bursts" in found.why


@pytest.mark.parametrize("every_s", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("step_ms", [6.3, 4.9, 1.0])
@pytest.mark.parametrize("count", [3, 6])
def test_pauses_of_the_machine_take_no_saving_away(every_s: float, step_ms: float, count: int) -> None:
    found = [trial_with_pauses(step_ms, seed, every_s, count=count) for seed in range(50)]
    assert sum(bool(one.why) for one in found) <= 2
