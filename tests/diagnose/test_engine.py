"""The engine applies rules, isolates crashes, and lets the step model judge what findings save."""

from tests.diagnose.kit import *


def examine(*rules: Rule, chart: Chart | None = None) -> dict[str, Result]:
    results = engine.examine(chart or chart_of(**COMPUTE), rules)
    return {result.rule.name: result for result in results}


def saved(*rules: Rule, chart: Chart | None = None) -> Saving:
    """What the last of these rules saves."""
    return sure(examine(*rules, chart=chart)[rules[-1].name].saving)


def followed(*rules: Rule, chart: Chart | None = None) -> Together | None:
    chart = chart or chart_of(**COMPUTE)
    return savings.together(chart, engine.examine(chart, rules))


def together(*rules: Rule, chart: Chart | None = None) -> Together:
    return sure(followed(*rules, chart=chart))


# Limits


@dataclass(frozen=True)
class Limits:
    least: float = 10.0


LIMITS = Limits()


def limited(step_model: StepModel, limits: Limits = LIMITS) -> Verdict:
    return finding() if step_model.step_ms >= limits.least else fine()


def test_a_rule_gets_the_limits_that_it_holds() -> None:
    as_written = rule(limited, "as-written", limits=LIMITS)
    found = examine(as_written, rule(limited, "set-higher", limits=Limits(least=1000.0)))
    assert isinstance(found["as-written"].outcome, Finding)
    assert isinstance(found["set-higher"].outcome, Healthy)


# Isolation


def broken() -> Verdict:
    raise KeyError("shape")


def missing(breakdown: Breakdown) -> Verdict:
    raise AssertionError(breakdown)


def fine() -> Verdict:
    return Healthy(summary="All is well")


def test_a_rule_that_crashes_leaves_the_others_untouched() -> None:
    found = examine(rule(broken), rule(fine), states("fault", part(50)))
    outcome = found["broken"].outcome
    assert isinstance(outcome, Errored)
    assert (outcome.error, "in broken" in outcome.traceback) == ("KeyError('shape')", True)
    assert (found["fine"].outcome, bool(found["fault"].saving)) == (fine(), True)


def test_a_missing_fact_is_not_applicable_with_its_reason_and_a_defect_in_one_an_error() -> None:
    chart = Chart([], missing={Breakdown: Unavailable("no step was traced")})
    assert examine(rule(missing), chart=chart)["missing"].outcome == NotApplicable(reason="no step was traced")
    defect = Chart([])  # cannot measure the breakdown: its parts were never given
    assert isinstance(examine(rule(missing), chart=defect)["missing"].outcome, Errored)


@pytest.mark.parametrize(
    "chart",
    [
        Chart([], missing={StepModel: Unavailable("no")}),
        Chart([]),
        chart_of(),  # steps without length
        chart_of(slowdown=1.6, **COMPUTE),  # steps that are mostly the profiler's
    ],
    ids=["unavailable", "defect", "no-length", "profiler"],
)
def test_without_a_step_to_model_findings_stand_without_a_saving(chart: Chart) -> None:
    result = examine(states("fault", part(50)), rule(fine), chart=chart)["fault"]
    assert isinstance(result.outcome, Finding)
    assert (result.saving, result.severity) == (None, Severity.NOTE)
    assert followed(states("fault", part(50)), chart=chart) is None


# What a finding saves


@pytest.mark.parametrize(
    ("ms_saved", "severity"),
    [(20.0, "CRITICAL"), (19.9, "WARNING"), (5.0, "WARNING"), (4.9, "NOTE"), (0.5, "NOTE")],
)
def test_severity_follows_the_saving(ms_saved: float, severity: str) -> None:
    fault = states("fault", part(ms_saved))
    assert examine(fault)["fault"].severity is Severity[severity]
    assert (saved(fault).ms_per_step, saved(fault).share) == pytest.approx((ms_saved, ms_saved / 100))


@pytest.mark.parametrize(
    ("slowdown", "ms_saved", "bound", "kind"),
    [
        (1.0, 3.0, Bound.AT_MOST, Finding),
        (1.0, 2.9, Bound.AT_MOST, Healthy),
        (1.0, 2.9, Bound.EXPECTED, Finding),
        (1.0, 0.49, Bound.EXPECTED, Healthy),
        (2.0, 5.0, Bound.EXPECTED, Finding),  # of steps that tracing made much longer, little is not reliable
        (2.0, 4.9, Bound.EXPECTED, NotApplicable),
    ],
)
def test_a_saving_of_little_is_no_finding(slowdown: float, ms_saved: float, bound: Bound, kind: type) -> None:
    result = examine(states("fault", part(ms_saved, bound=bound)), chart=chart_of(slowdown=slowdown, **COMPUTE))
    outcome = result["fault"].outcome
    assert isinstance(outcome, kind)
    if isinstance(outcome, Healthy):
        assert outcome.evidence == (SEEN,)
        assert outcome.summary.startswith("Something is slow; fixing it would save less")
        assert (result["fault"].saving, result["fault"].severity) == (None, None)
    if isinstance(outcome, NotApplicable):
        assert "is not reliable" in outcome.reason


def test_a_change_that_costs_time_is_healthy() -> None:
    slower = Effect(Stage.DEVICE, 1.5, "part", ms(50.0))
    assert isinstance(examine(states("fault", slower))["fault"].outcome, Healthy)


def test_a_finding_without_effects_states_its_own_severity() -> None:
    found = examine(states("grave", severity=Severity.WARNING), states("plain"))
    assert (found["grave"].severity, found["plain"].severity) == (Severity.WARNING, Severity.NOTE)
    assert isinstance(found["plain"].outcome, Finding)


def test_a_model_that_explains_too_little_makes_no_upper_bound() -> None:
    """It may be off either way: the report says that the saving is an estimate."""
    saving = saved(states("fault", Effect(Stage.INPUT, 0.5)), chart=overlapped(20.0, input=40.0, device=10.0))
    assert (saving.bound, "60 %" in saving.how, "estimate" in saving.how) == (Bound.EXPECTED, True, True)


# How a saving was computed


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        ([part(30, "a"), part(10, "b")], ["100 ms", "two parts of the device work", "60.0 ms"]),
        ([Effect(Stage.DEVICE, 0.76)], ["the step model shortens the device work by 24 % and predicts"]),
        ([Effect(Stage.DEVICE, 0.0)], ["the step model removes the device work and predicts"]),
        ([Effect(Stage.DEVICE, 0.5, why="it shares 2 cores")], ["by 50 % (it shares 2 cores) and"]),
    ],
    ids=["parts", "less", "none", "why"],
)
def test_it_is_told_how_a_saving_was_computed(effects: list[Effect], words: list[str]) -> None:
    how = saved(states("slow", *effects)).how
    assert [one for one in words if one not in how] == []


def test_a_general_finding_takes_what_its_summary_states() -> None:
    stated = replace(finding(part(8)), takes=ms(3.0))
    assert examine(rule(lambda: stated, "asks", general=True))["asks"].takes == Takes(3.0, 0.03)


# What hides what


def test_a_saving_behind_the_input_says_what_to_mend_first() -> None:
    found = examine(INPUT, MATMUL, chart=bound_by_input())
    hidden, saving = found["float32-matmul"], sure(found["float32-matmul"].saving)
    assert isinstance(hidden.outcome, Finding)
    assert (saving.after, saving.ms_per_step, hidden.severity) == (("input-bound",), 0, Severity.NOTE)
    assert "4.00 ms" in saving.how
    assert "The step waits 40.0 ms for input" in saving.how
    assert sure(found["input-bound"].saving).after == ()


def test_a_saving_that_a_huge_wait_dwarfs_says_so_too() -> None:
    """A minute's wait before 10 ms of compute, not made beside it: 4 ms are little of the step."""
    dwarfed = saved(INPUT, MATMUL, chart=chart_of(input=60_000.0, device=10.0))
    assert dwarfed.after == ("input-bound",)
    assert dwarfed.ms_per_step == pytest.approx(4)


def test_a_saving_that_nothing_will_ever_uncover_is_healthy_and_so_is_a_trifle() -> None:
    assert isinstance(examine(MATMUL, chart=bound_by_input())["float32-matmul"].outcome, Healthy)
    found = examine(INPUT, states("trifle", part(0.04)), chart=bound_by_input())
    assert isinstance(found["trifle"].outcome, Healthy)


CAUSE = states("cause", Effect(Stage.INPUT, 0.01, "map"))
ELSEWHERE = states("between-steps", Effect(Stage.BETWEEN, 0.0))
EACH = [states(name, Effect(Stage.INPUT, scales, "map")) for name, scales in (("one", 0.3), ("two", 0.5))]


@pytest.mark.parametrize(
    ("rules", "parts", "after"),
    [
        ([INPUT, ELSEWHERE], {"device": 9.0, "between": 1.0}, {"input-bound"}),
        ([*EACH, states("trifle", part(0.04, "bias"))], {"device": 10.0}, {"one", "two"}),
        ([INPUT, CAUSE], {"device": 10.0}, {"cause"}),  # not the symptom
    ],
    ids=["no other part", "both and no trifle", "cause"],
)
def test_only_what_hides_a_saving_is_named(rules: list[Rule], parts: dict[str, float], after: set[str]) -> None:
    chart = overlapped(50.0, input=40.0, **parts)
    assert set(saved(*rules, MATMUL, chart=chart).after) == after


# All together


def test_all_changes_together_are_one_figure() -> None:
    both = together(states("a", part(30, "x")), states("b", part(20, "y")))
    assert (both.ms_per_step, both.share) == pytest.approx((50, 0.5))
    assert (both.bound, set(both.rules), both.more_than_alone) == (Bound.EXPECTED, {"a", "b"}, False)


def test_two_names_for_one_change_are_one_change() -> None:
    both = together(INPUT, states("sequential-map", Effect(Stage.INPUT, 0.0, "map")), chart=bound_by_input())
    assert (both.rules, both.bound) == (("sequential-map",), Bound.EXPECTED)
    assert both.ms_per_step == pytest.approx(40)


def test_nothing_to_follow_saves_nothing() -> None:
    assert followed(rule(fine), states("plain"), states("trifle", part(0.1))) is None


def test_what_overlaps_gains_only_together() -> None:
    """Input of 100 ms beside a compute of 90: either alone gains little or nothing."""
    chart = overlapped(100.0, device=90.0, input=10.0)
    quick = states("quick-input", Effect(Stage.INPUT, 0.1, "map"))
    both = together(quick, states("light-model", Effect(Stage.DEVICE, 0.1)), chart=chart)
    assert (both.ms_per_step, both.more_than_alone) == (near(90), True)
    assert not together(quick, chart=chart).more_than_alone


@pytest.mark.parametrize("device", [DeviceKind.CPU, DeviceKind.GPU])
def test_a_set_that_holds_a_ceiling_is_one_on_any_device(device: DeviceKind) -> None:
    rules, chart = (states("sure", part(30, "a")), INPUT), chart_of(device=60.0, input=40.0)
    chart = Chart([replace(chart.fact(StepModel), device=device)])
    assert together(*rules, chart=chart).bound is Bound.AT_MOST
    bounds = {name: r.saving.bound for name, r in examine(*rules, chart=chart).items() if r.saving}
    assert bounds == {"sure": Bound.EXPECTED, "input-bound": Bound.AT_MOST}


@given(
    parts=st.fixed_dictionaries({str(one): times for one in EXPOSED}),
    made=times,
    stated=st.lists(st.lists(effects, min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_all_together_save_no_more_than_the_step_and_no_less_than_the_best(
    parts: dict[str, float], made: float, stated: list[list[Effect]]
) -> None:
    """Less only by what is not worth saying, where one change has two names."""
    chart = overlapped(made, **{**parts, "unknown": 1.0})
    results = engine.examine(chart, [states(f"rule-{n}", *mine) for n, mine in enumerate(stated)])
    both = savings.together(chart, results)
    alone = [result.saving.ms_per_step for result in results if result.saving]
    step = chart.fact(StepModel).step_ms
    if both is None:
        assert not alone
        return
    slack = savings.WORTH_SAYING * step * len(stated)
    assert max(alone, default=0.0) - slack <= both.ms_per_step <= step + 1e-6
    assert both.share == pytest.approx(both.ms_per_step / step)


# Order


def ranked(chart: Chart, *rules: Rule) -> list[str]:
    return [result.rule.name for result in engine.examine(chart, rules)]


def test_findings_come_first_by_saving_then_health_then_the_rest() -> None:
    absent = rule(lambda: NotApplicable(reason="no"), "absent")
    small, large = states("small", part(6, "x")), states("large", part(30, "y"))
    grave, plain = states("grave", severity=Severity.WARNING), states("plain")
    names = ["large", "small", "grave", "plain", "fine", "absent", "broken"]
    assert ranked(chart_of(**COMPUTE), rule(broken), rule(fine), small, absent, large, grave, plain) == names
    alike = [states(name, part(10, name)) for name in "abc"]  # no matter in which order they come
    assert ranked(chart_of(**COMPUTE), *alike) == ranked(chart_of(**COMPUTE), *reversed(alike)) == [*"abc"]


def test_a_grave_fault_without_a_figure_stands_before_a_small_one_with_a_figure() -> None:
    """Compiling that took most of the traced time saves nothing of the usual step."""
    grave = states("grave", severity=Severity.CRITICAL)
    assert ranked(chart_of(**COMPUTE), states("small", part(8)), grave) == ["grave", "small"]


def general(*effects: Effect) -> Rule:
    """A general rule that finds what others leave."""

    def hot(unexplained: Unexplained) -> Verdict:
        return finding(*effects) if unexplained.parts_ms else finding()

    return rule(hot, "hot", general=True)


UNEXPLAINED = chart_of(**COMPUTE)


def test_severity_comes_before_time_whether_a_rule_is_general() -> None:
    """A general finding of half of the step precedes one of 5 %; a remark on the recording follows all."""
    small, equal = states("small", part(4.0, "a")), states("equal", part(12.0, "b"))
    note = replace(states("recording", severity=Severity.CRITICAL), topic=Topic.RECORDING)
    names = ranked(UNEXPLAINED, note, small, general(part(50.0, "hot")), equal)
    assert names == ["hot", "equal", "small", "recording"]


def test_a_general_finding_names_no_more_than_is_left() -> None:
    known = states("known", part(COMPUTE["device"] / 2, "c"))
    found = examine(known, general(part(60.0, "a"), part(60.0, "b")), chart=UNEXPLAINED)
    outcome = as_finding(found["hot"].outcome)
    assert [effect.of.value for effect in outcome.effects if effect.of] == pytest.approx([25.0] * 2)


@pytest.mark.parametrize(("extra_ms", "first"), [(90.0, "long"), (10.0, "saves")])
def test_long_steps_rank_by_what_they_add_to_the_mean_step(extra_ms: float, first: str) -> None:
    times = [round((10.0 + extra_ms * (number in {5, 15})) * PS_PER_MS) for number in range(20)]
    steps = [Step(number, sum(times[:number]), *[sum(times[: number + 1])] * 2) for number in range(20)]
    chart = chart_of(Steps.of(steps), device=10.0)
    verdict = replace(finding(severity=Severity.CRITICAL), concern=Concern.LONG_STEPS)
    assert ranked(chart, states("saves", part(4.0)), rule(lambda: verdict, "long"))[0] == first


# A rule as a module

SECTIONS = ("What it checks", "Why it matters", "How to fix", "Holds for", "Sources")


def module(lacking: str = "") -> ModuleType:
    made = ModuleType("tfdoctor.rules.slow_thing")
    sections = "".join(f"## {name}\n\n{'' if name == lacking else 'Text.'}\n\n" for name in SECTIONS)
    made.__doc__ = f"The thing is slow.\n\n{sections}"
    vars(made).update(TOPIC=Topic.INPUT, SINCE="0.1.0", check=missing, sick=fine, healthy=fine)
    return made


def test_a_rule_is_read_out_of_its_module() -> None:
    read = Rule.from_module(module())
    assert (read.name, read.needs, read.doc.title) == ("slow-thing", ("Breakdown",), "The thing is slow")
    assert read.doc.sections["How to fix"] == "Text."
    without = module()
    del without.check
    with pytest.raises(AttributeError, match="check"):
        Rule.from_module(without)


@pytest.mark.parametrize("lacking", SECTIONS)
def test_a_rule_without_a_section_is_no_rule(lacking: str) -> None:
    with pytest.raises(ValueError, match=lacking):
        Rule.from_module(module(lacking))


# Python in the input


def without_python(map_scales: float) -> Rule:
    """A change of Python in the input that keeps the loop from the interpreter as well."""
    python = Effect(Stage.INPUT, map_scales, "map", ms(40.0), bound=Bound.AT_MOST)
    loop = Effect(Stage.HOST, 0.5, StepWork.INTERPRETER, ms(20.0), bound=Bound.AT_MOST)
    return states("python", python, loop)


def test_a_bound_of_a_whole_stage_is_no_lower_than_that_of_its_parts() -> None:
    """Python in the input keeps the loop from the interpreter: without any input, the loop has it too."""
    chart = overlapped(100.0, input=60.0, host=20.0, device=20.0)
    python = without_python(0.1)
    assert saved(python, INPUT, chart=chart).ms_per_step >= saved(INPUT, python, chart=chart).ms_per_step
    assert saved(INPUT, chart=chart).ms_per_step == 60.0


def test_what_a_saving_of_input_has_beyond_the_wait_is_explained_with_its_figure() -> None:
    """The wait is 60 ms, the saving 70 or, on a CPU whose two cores are crowded, 77.5."""
    chart = overlapped(100.0, input=60.0, host=20.0, device=20.0)
    (loop,) = (text for text in saved(without_python(0.0), chart=chart).how.split(". ") if "Of the saving" in text)
    assert loop == (
        "Of the saving, 60.0 ms are the wait for input; added to this are up to 10.0 ms because Python of the "
        "input no longer keeps the training loop from the interpreter."
    )
    model = savings.model_of(chart)
    assert model
    crowded = replace(model, device=DeviceKind.CPU, cores=Cores(2.0, 1.6), input_ms=100.0)
    both = saved(without_python(0.0), chart=Chart([crowded])).how
    assert "60.0 ms are the wait for input; added to this are up to 7.50 ms because Python" in both
    assert "and up to 10.0 ms because work of the input leaves its cores to the rest" in both


def test_a_saving_within_the_wait_needs_no_such_explanation() -> None:
    for change, chart in (
        (without_python(0.0), overlapped(100.0, input=60.0, device=40.0)),
        (MATMUL, chart_of(device=10.0)),
    ):
        assert "Of the saving" not in saved(change, chart=chart).how
