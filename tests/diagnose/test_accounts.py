"""What explains the large parts of a step, and what the general rules get and may say."""

from tests.diagnose.kit import *
from tfdoctor.diagnose.diagnose import chart_of as from_recording


def only(chart: Chart, rule: Rule) -> Result:
    (found,) = engine.examine(chart, (rule,))
    return found


def needs(part: str, time: float) -> Rule:
    necessary = (PartTime(part, ms(time), "Matmuls run at 80 % of the peak"),)
    return rule(lambda: Healthy(summary="Fine", necessary=necessary), "needs")


def account(chart: Chart, *rules: Rule) -> Account:
    (only,) = accounts(chart, engine.examine(chart, rules))
    return only


def mapped(time: float, **parts: Any) -> Chart:
    """A step of these parts beside which a map makes its input."""
    return chart_of(PipelineSegment({MAP: time}, overlapped=True), **parts)


MAP = "Root::Prefetch::Map"


def device(of: float, subject: str = "conv") -> Effect:
    return Effect(Stage.DEVICE, 0.5, subject, ms(of))


@pytest.mark.parametrize(("time", "number"), [(9.9, 1), (10.0, 2)])
def test_a_tenth_of_the_step_needs_an_account(time: float, number: int) -> None:
    chart = chart_of(device=100.0 - time, host=time)
    assert len(accounts(chart, ())) == number


@pytest.mark.parametrize(
    ("effects", "left"),
    [
        ([[device(90.1)]], 0.0),
        ([[device(89.9)]], 10.1),
        ([[device(60.0)], [device(50.0)]], 40.0),  # two findings about one subject name it once
        ([[device(60.0)], [device(40.0, "pool")]], 0.0),
        ([[device(60.0), Effect(Stage.DEVICE, 1.1, "pool", ms(40.0))]], 40.0),  # work that pays for a change
        ([[Effect(Stage.DEVICE, 0.0, bound=Bound.AT_MOST)]], 0.0),  # a ceiling names its whole stage
    ],
)
def test_a_finding_names_no_more_than_its_time(effects: list[list[Effect]], left: float) -> None:
    rules = [states(f"rule-{n}", *own) for n, own in enumerate(effects)]
    found = account(chart_of(device=100.0), *rules)
    assert found.state is (AccountState.UNEXPLAINED if left else AccountState.NAMED)
    assert found.rules == tuple(rule.name for rule in rules)
    assert found.unexplained_ms == pytest.approx(left)


def test_a_finding_without_an_effect_may_name_its_part() -> None:
    named = states("odd", names=(PartTime(UNKNOWN, ms(95.0)),))
    assert account(chart_of(unknown=100.0), named).state is AccountState.NAMED


def test_necessary_work_says_why() -> None:
    found = account(chart_of(device=100.0), needs("device", 95.0))
    assert (found.state, found.why) == (AccountState.NECESSARY, ("Matmuls run at 80 % of the peak",))
    assert account(chart_of(device=100.0), needs("device", 80.0)).unexplained_ms == 20.0
    assert account(chart_of(host=100.0), needs("device", 95.0)).why == ()


def test_a_finding_about_a_stage_names_its_share_of_the_wait() -> None:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    pipeline = InputPipeline.of(ahead, StageTime.of(MAP, 30.0), StageTime.of(f"{MAP}::Read", 10.0))
    chart = chart_of(pipeline, *pipeline.segments, input=80.0, device=5.0)
    found = account(chart, states("slow", Effect(Stage.INPUT, 0.0, MAP)))
    assert found.unexplained_ms == pytest.approx(20.0)


# General rules


def general(*effects: Effect, name: str = "hot") -> Rule:
    def check(unexplained: Unexplained) -> Verdict:
        got.append(unexplained)
        return finding(*effects)

    return replace(rule(check, name), general=True)


got: list[Unexplained] = []


def examined(chart: Chart, *rules: Rule) -> dict[str, Result]:
    got.clear()
    return {result.rule.name: result for result in engine.examine(chart, rules)}


def hot(of: float, subject: str = "pool") -> Effect:
    return Effect(Stage.DEVICE, 0.0, subject, ms(of), bound=Bound.AT_MOST)


def test_general_rules_run_last_and_get_what_is_left() -> None:
    examined(chart_of(device=100.0), general(hot(30.0)), states("slow", device(60.0)))
    assert got == [Unexplained({"device": 40.0}, frozenset({"conv"}))]
    ceiling = Effect(Stage.DEVICE, 0.0, bound=Bound.AT_MOST)  # which leaves its place to them
    examined(chart_of(device=100.0), general(hot(30.0)), states("all", ceiling))
    assert got[0].parts_ms == {"device": 100.0}


def test_a_general_finding_gives_way_to_specific_ones() -> None:
    chart = chart_of(device=100.0)
    limited = examined(chart, general(hot(90.0)), states("slow", device(60.0)))
    assert as_finding(limited["hot"].outcome).effects[0].of == ms(40.0)
    for other in (hot(90.0, "conv"), Effect(Stage.HOST, 0.0, "x", ms(9.0))):
        results = examined(chart, general(other), states("slow", device(60.0)))
        assert isinstance(results["hot"].outcome, Healthy)


def test_a_general_finding_names_the_part_and_states_its_time_but_is_no_change() -> None:
    chart = chart_of(device=100.0)
    results = engine.examine(chart, [general(hot(95.0))])
    assert accounts(chart, results)[0].rules == ("hot",)
    assert savings.together(chart, results) is None
    (result,) = results
    assert result.saving is None
    takes = sure(result.takes)
    assert (takes.ms_per_step, takes.share) == pytest.approx((95.0, 0.95))
    assert result.severity is Severity.CRITICAL


@pytest.mark.parametrize(("time", "first"), [(39.0, "hot"), (4.0, "slow")])
def test_the_rank_of_a_general_finding_follows_its_time(time: float, first: str) -> None:
    results = examined(chart_of(device=100.0), general(hot(time)), states("slow", device(12.0)))
    assert next(iter(results)) == first


def test_without_steps_nothing_is_known_to_be_unexplained() -> None:
    results = examined(Chart([Steps.uniform(3, 1.0)]), general(hot(1.0)))
    assert not isinstance(results["hot"].outcome, Finding)
    assert not accounts(Chart([]), tuple(results.values()))


# Few steps, and slow ones


@pytest.mark.parametrize(("number", "few"), [(1, True), (4, True), (5, False)])
def test_few_steps_make_notes_without_savings(number: int, *, few: bool) -> None:
    chart = chart_of(Steps.uniform(number, 100.0), host=100.0)
    results = examined(chart, states("waits", Effect(Stage.HOST, 0.0, "", ms(100.0))))
    assert isinstance(results["waits"].outcome, Finding)
    assert results["waits"].severity is (Severity.NOTE if few else Severity.CRITICAL)
    assert (results["waits"].saving is None) is few
    assert (savings.together(chart, results.values()) is None) is few


def test_a_single_call_of_many_steps_is_one_observation() -> None:
    step = replace(Steps.uniform(1, 2000.0).steps[0], calls=20)
    chart = chart_of(Steps.of([step]), host=100.0)
    assert savings.too_few_steps(chart)
    assert not savings.too_few_steps(chart_of(Steps.of([step] * 3), host=100.0))


def test_few_steps_keep_the_order_of_what_would_be_saved() -> None:
    chart = chart_of(Steps.uniform(1, 100.0), host=90.0, between=10.0)
    wait = states("wait", Effect(Stage.HOST, 0.0, "wait", ms(90.0)))
    results = examined(chart, states("aaa", Effect(Stage.BETWEEN, 0.0, "a", ms(8.0))), wait)
    assert list(results) == ["wait", "aaa"]
    assert {result.severity for result in results.values()} == {Severity.NOTE}


@pytest.mark.parametrize(
    ("slow_ms", "saved_ms", "severity"),
    [
        (999.0, 90.0, Severity.CRITICAL),  # of ten steps of 100 ms, one takes half of the time
        (1000.0, 90.0, Severity.WARNING),
        (1000.0, 15.0, Severity.WARNING),  # 7.5 % of the mean step, 15 % of the typical one
        (4000.0, 15.0, Severity.NOTE),
    ],
)
def test_nothing_typical_is_critical_where_slow_steps_take_most_of_the_time(
    slow_ms: float, saved_ms: float, severity: Severity
) -> None:
    slow = SlowSteps(1, slow_ms, 11, 1000.0 + slow_ms)
    chart = chart_of(Steps.uniform(10, 100.0), slow, host=100.0)
    result = only(chart, states("typical", Effect(Stage.HOST, 0.0, "work", ms(saved_ms))))
    assert result.severity is severity
    assert result.saving


# Work that the input hides


PACED = (
    "The input pipeline works 100 ms for the batch of a step of 100 ms, so less of this work would not shorten "
    "the step"
)


def test_a_small_ceiling_of_a_step_that_never_waits_is_not_behind_the_input() -> None:
    """Making the batch takes 0.1 of 100 ms: 2 % are too little for a ceiling, not hidden by anything."""
    few = Effect(Stage.DEVICE, 0.0, "padding", ms(2.0), bound=Bound.AT_MOST)
    chart = mapped(0.1, on=DeviceKind.CPU, input=0.01, device=99.99)
    assert as_healthy(only(chart, states("padding", few)).outcome).necessary == ()


def test_a_step_that_waits_says_for_how_long_where_its_input_sets_the_pace() -> None:
    chart = mapped(95.0, on=DeviceKind.CPU, input=40.0, device=60.0)
    (work,) = as_healthy(only(chart, states("slow", device(30.0))).outcome).necessary
    assert work.why.startswith("The step waits 40.0 ms for input: ")


def test_time_behind_the_input_is_unexplained_where_no_finding_names_the_input() -> None:
    found = account(mapped(100.0, device=100.0), states("slow", device(95.0)))
    assert (found.state, found.why) == (AccountState.UNEXPLAINED, (PACED,))
    assert found.unexplained_ms == pytest.approx(100.0)


def test_time_behind_the_input_is_necessary_where_a_finding_names_the_input() -> None:
    """The pipeline gets 2 % faster, with what passes between steps; the compute's half still saves nothing."""
    chart = mapped(100.0, device=95.0, between=5.0)
    less = Effect(Stage.INPUT, 0.98, "Root::Prefetch::Map"), Effect(Stage.BETWEEN, 0.0)
    found = account(chart, states("slow", device(90.0)), states("pipeline", *less))
    assert (found.state, found.why) == (AccountState.NECESSARY, (PACED,))


def test_the_saving_behind_an_input_that_tracing_slows_is_a_ceiling() -> None:
    """Untraced, its 40,000 elements may be quick: then half of these 60 ms are saved, otherwise nothing."""
    chart, slow = mapped(100.0, device=100.0), states("slow", device(60.0))
    saving = sure(only(Chart([replace(chart.fact(StepModel), elements=40_000.0)]), slow).saving)
    assert (saving.ms_per_step, saving.bound) == (30.0, Bound.AT_MOST)
    assert "this recording cannot tell" in saving.how
    assert isinstance(only(chart, slow).outcome, Healthy)


def test_a_general_finding_behind_the_input_stands_without_a_saving() -> None:
    found = only(mapped(100.0, device=100.0), replace(states("slow", device(95.0)), general=True))
    assert isinstance(found.outcome, Finding)
    assert (found.saving, found.severity) == (None, Severity.CRITICAL)
    assert sure(found.takes).ms_per_step == pytest.approx(47.5)


# What the trainer's short wait does not hide


def test_time_between_steps_saves_now_although_the_trainer_waits_a_little() -> None:
    """Of 27.8 ms 16.5 pass between steps; the input is waited for, but takes 9 ms itself."""
    pauses = Effect(Stage.BETWEEN, 0.0, StepWork.BETWEEN_CALLS, ms(16.5), bound=Bound.AT_MOST)
    waits = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    chart = mapped(9.0, input=3.0, host=2.0, device=6.3, between=16.5)
    found = examined(chart, states("between-steps", pauses), states("input-bound", waits))
    saving = sure(found["between-steps"].saving)
    assert (saving.after, saving.ms_per_step) == ((), near(15.8))


# The contract itself


def test_the_contract_notices_a_contradiction_and_a_missing_account() -> None:
    chart = chart_of(PythonOverhead(0.0, 1.0), between=20.0, device=20.0)
    assert [one for one in agreement.disagreements(chart) if one.startswith("between")]
    assert not list(agreement.unaccounted(chart, engine.examine(chart, ())))


@pytest.mark.parametrize(
    ("cores", "part", "said"),
    [
        (Cores(2.0, 0.4, 1.5), "host", True),
        (Cores(2.0, 1.6, 0.4), "host", False),  # hardly any other programs
        (Cores(16.0, 1.0, 1.5), "host", False),  # cores enough for both
        (Cores(2.0, 0.4, 1.5), "input", False),
    ],
)
def test_other_programs_are_mentioned_where_they_delay_unexplained_work(
    cores: Cores, part: str, *, said: bool
) -> None:
    unexplained = account(chart_of(cores, **{part: 5.0}))
    assert unexplained.state is AccountState.UNEXPLAINED
    assert any("Other programs used 1.5 of 2 cores" in why for why in unexplained.why) is said
    explained = account(chart_of(cores, host=5.0), needs("host", 5.0))
    assert not any("Other programs" in why for why in explained.why)


def test_the_operations_of_a_layer_are_left_out_of_what_is_unexplained() -> None:
    """What one finding names, in operations of its own, is not named again."""
    sample = Path(__file__).parents[2] / "sample_traces" / "cpu-float32-convnet"
    chart = from_recording(Recording.open(sample))
    results = engine.examine(chart, [one for one in all_rules() if one.name == "unfused-batch-norm"])
    norms = chart.fact(BatchNorms).unfused
    names = {name for norm in norms for name in norm.names}
    assert len(names) > len(norms)
    assert names <= sure(unexplained(chart, results)).subjects


# What was seen in the unexplained time of a part


LINE, CALLBACK = Location("train.py", 3), Location("train.py", 21)


def places(found: Account) -> list[tuple[str, Location | None, object]]:
    return [(seen.what, seen.at, pytest.approx(seen.value)) for seen in found.seen]


def untimed(seen: int = FEW) -> StackSamples:
    return StackSamples((TimedLine(CALLBACK, seen, callback="Log.on_train_batch_end"),))


def test_each_part_shows_its_own_samples() -> None:
    timed = HostLines(
        {
            Stage.HOST: (TimedLine(LINE, 20, 2.0), TimedLine(LINE, 20, 2.0, work=LineWork.ENTERING)),
            Stage.BETWEEN: (TimedLine(CALLBACK, 9, 1.0, "Log.on_train_batch_end"),),
        }
    )
    host = places(account(chart_of(timed, untimed(), host=100.0)))
    assert host == [("Python", LINE, 0.5), ("entering a compiled function", LINE, 0.5)]
    between = places(account(chart_of(timed, untimed(), between=100.0)))
    assert between == [("Log.on_train_batch_end", CALLBACK, 1.0)]


@pytest.mark.parametrize("work", [LineWork.LOOPING, LineWork.ENTERING, LineWork.DISPATCHING])
def test_what_the_framework_does_for_a_call_names_no_loop_of_its_own(work: LineWork) -> None:
    """Trap: the loop that calls `train_on_batch`, or a compiled function, is the user's."""
    lines = HostLines({Stage.HOST: (TimedLine(LINE, 20, 2.0, work=work),)})
    ((what, at, _),) = places(account(chart_of(lines, untimed(), host=100.0)))
    assert at == LINE
    assert "loop" not in what


def test_samples_between_calls_say_nothing_of_the_host_part() -> None:
    """Trap: a callback runs between two calls, and the trace has no time of its samples."""
    events = PartEvents({Stage.HOST: (PartEvent("Execute", "python", 8.0),)})
    assert places(account(chart_of(untimed(), events, between=100.0)))[0][1:] == (CALLBACK, 1.0)
    assert places(account(chart_of(untimed(), events, host=100.0))) == [("Execute (thread python)", None, 8.0)]


@pytest.mark.parametrize(("seen", "shown"), [(FEW, 1), (FEW - 1, 0)])
def test_a_few_samples_give_no_share(seen: int, shown: int) -> None:
    assert len(account(chart_of(untimed(seen), between=100.0)).seen) == shown


def operations(**times: float) -> Operations:
    return Operations(tuple(OperationTime(name=name, type=name, ms=time) for name, time in times.items()))


def test_an_operation_that_a_change_cannot_shorten_is_not_named() -> None:
    """A convolution at the peak rate takes the time, though a finding mentions it."""
    effects = (
        Effect(Stage.DEVICE, 1.0, "Conv2D", ms(70.0), bound=Bound.AT_MOST),
        Effect(Stage.DEVICE, 0.0, "Relu", ms(10.0)),
    )
    given = operations(Conv2D=70.0, Relu=30.0)
    found = account(chart_of(given, device=100.0), states("hot", *effects))
    assert places(found) == [("Conv2D", None, 70.0), ("Relu", None, 20.0)]


@pytest.mark.parametrize("part", [Stage.DEVICE, Stage.HOST])
def test_the_seen_times_never_exceed_the_unexplained(part: Stage) -> None:
    """A finding names time without its operations; threads overlap."""
    named = states("odd", names=(PartTime(part, ms(60.0)),))
    threads = PartEvents({part: (PartEvent("a", "one", 90.0), PartEvent("b", "two", 90.0))})
    chart = chart_of(operations(Mul=60.0, AddV2=40.0), threads, **{str(part): 100.0})
    found = account(chart, named)
    assert found.unexplained_ms == pytest.approx(40.0)
    assert sum(seen.value for seen in found.seen) == pytest.approx(40.0)
    assert not list(agreement.unaccounted(chart, ()))


def test_times_beyond_a_part_are_noticed() -> None:
    seen = (Seen("Mul", 43.0, Unit.MILLISECONDS),)
    odd = Account(part="device", total_ms=100.0, state=AccountState.UNEXPLAINED, unexplained_ms=40.0, seen=seen)
    assert list(agreement.seen_beyond([odd]))
