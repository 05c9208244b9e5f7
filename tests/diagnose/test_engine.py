"""The engine applies rules and isolates crashes; and what holds of any findings, in the step and in the run."""

from tests.diagnose.kit import *
from tests.diagnose.test_verdicts import COMPILED, COMPUTING, EAGER, broken, edit, fine, missing, of, run_of
from tfdoctor.diagnose.diagnose import chart_of as from_recording


@dataclass(frozen=True)
class Limits:
    least: float = 10.0


LIMITS = Limits()


def limited(step_model: StepModel, limits: Limits = LIMITS) -> Verdict:
    return finding() if step_model.step_ms >= limits.least else fine()


def test_a_rule_gets_the_limits_that_it_holds() -> None:
    higher = rule(limited, "set-higher", limits=Limits(least=1000.0))
    found = engine.examine(COMPUTING, [rule(limited, "as-written", limits=LIMITS), higher])
    kinds = {result.rule.name: type(result.outcome) for result in found}
    assert kinds == {"as-written": Finding, "set-higher": Healthy}


def test_a_crash_has_its_traceback() -> None:
    (result,) = engine.examine(COMPUTING, [rule(broken)])
    assert isinstance(result.outcome, Errored)
    assert "in broken" in result.outcome.traceback


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


@each(*SECTIONS)
def test_a_rule_without_a_section_is_no_rule(lacking: str) -> None:
    with pytest.raises(ValueError, match=lacking):
        Rule.from_module(module(lacking))


# The contract of accounts
def test_the_contract_notices_a_contradiction() -> None:
    chart = chart_of(PythonOverhead(0.0, 1.0), between=20.0, device=20.0)
    assert [one for one in agreement.disagreements(chart) if one.startswith("between")]


def test_the_operations_of_a_layer_are_left_out_of_what_is_unexplained() -> None:
    """What one finding names, in operations of its own, is not named again."""
    sample = Path(__file__).parents[2] / "sample_traces" / "cpu-float32-convnet"
    chart = from_recording(Recording.open(sample))
    results = engine.examine(chart, [one for one in all_rules() if one.name == "unfused-batch-norm"])
    norms = chart.fact(BatchNorms).unfused
    names = {name for norm in norms for name in norm.names}
    assert len(names) > len(norms)
    assert names <= sure(unexplained(chart, results)).subjects


shares = st.floats(0, 1).map(lambda share: round(share, 6))
"""What a change leaves; of a share of 1e-300 nothing can be divided, nor does any rule state one."""
changes_of_the_step = st.builds(
    Effect,
    stage=st.sampled_from([Stage.DEVICE, Stage.HOST, Stage.BETWEEN]),
    scales=shares,
    subject=st.sampled_from(["", "a", "b"]),
    of=st.floats(0, 40).map(lambda time: ms(round(time, 3))),
    bound=st.sampled_from(Bound),
) | st.builds(Effect, stage=st.just(Stage.INPUT), scales=shares, subject=st.sampled_from(["", "map"]))
edit_ids = st.sampled_from(["", "jit-compile", "run-eagerly-off", "fused-batch-norm"])


# The order to follow findings
def test_results_stand_in_the_order_of_their_turns() -> None:
    results = engine.examine(COMPUTING, [EAGER, COMPILED, states("plain", severity=Severity.NOTE)])
    assert [one.rule.name for one in results] == ["unfused-elementwise", "eager-step", "plain"]
    after = [one.rule.name for one in in_order(results, order(COMPUTING, results))]
    assert after == ["eager-step", "unfused-elementwise", "plain"]
    assert in_order(results, None) == results


@given(
    made=st.floats(0, 60).map(lambda time: round(time, 3)),
    changes=st.lists(st.tuples(changes_of_the_step, edit_ids), max_size=5),
)
def test_turns_add_up_and_no_advice_is_lost(made: float, changes: list[tuple[Effect, str]]) -> None:
    """Turns save what all of them save together, never less than nothing, and each rule has one at most."""
    chart = overlapped(made, device=40.0, host=10.0, input=10.0)
    rules = [edit(f"rule-{n}", edit_id, effect) for n, (effect, edit_id) in enumerate(changes)]
    results = engine.examine(chart, rules)
    found = order(chart, results)
    turns = {one.rule: one.ms_per_step for one in found.turns} if found else {}
    assert len(turns) == len(found.turns if found else ())
    assert all(saves >= 0 for saves in turns.values())
    together = chart.fact(StepModel).saving([one for n, (one, _) in enumerate(changes) if f"rule-{n}" in turns])
    assert sum(turns.values()) == pytest.approx(together, abs=1e-4)
    assert sorted(r.rule.name for r in in_order(results, found)) == sorted(r.rule.name for r in results)
    assert all("\n" not in sentence for sentence in sentences(found))


changes_of_the_run = st.one_of(
    st.builds(part, st.floats(0.0, 99.0)),
    st.builds(
        of,
        st.sampled_from([Phase.PREPARING, Phase.BOUNDARIES]),
        st.floats(0.0, 50_000.0),
        st.sampled_from(["", "a", "b"]),
        scales=st.floats(0.0, 1.0),
        recurs=st.sampled_from(Recurrence),
    ),
)


# Findings by the run
def test_a_window_alone_prices_nothing() -> None:
    phases = phases_of({Phase.STEPS: 1_000.0}, whole=False)
    assert (RunPricing.of(run_chart(phases)), RunPricing.of(run_chart(None))) == (None, None)


@given(st.lists(st.lists(changes_of_the_run, min_size=1, max_size=4), min_size=1, max_size=4))
def test_no_second_is_saved_twice(changes: list[list[Effect | RunEffect]]) -> None:
    chart = run_of(preparing=50_000.0, boundaries=50_000.0)
    pricing = sure(RunPricing.of(chart))
    results = engine.examine(chart, [states(f"rule-{n}", *own) for n, own in enumerate(changes)], pricing)
    found = [result.run for result in results if result.run]
    assert all(saving.share <= saving.rated_share <= 1.0 for saving in found)
    assert all(saving.each_ms <= saving.ms * (1 + 1e-9) for saving in found)
    if whole := pricing.together(results, savings.together(chart, results)):
        assert whole.ms <= sum(saving.ms for saving in found) * (1 + 1e-9)
        assert whole.ms <= 200_000.0
        assert sum(whole.phases_after_ms.values()) + whole.ms == pytest.approx(200_000.0)
