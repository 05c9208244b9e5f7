"""In which order to follow findings: from their effects, and from what their edits do to each other."""

from tests.diagnose.kit import *

MAP = states("sequential-map", Effect(Stage.INPUT, 0.1, "map"))
BATCH = states("small-batch", Effect(Stage.HOST, 0.5))


def edit(name: str, edit_id: str | tuple[str, ...], *effects: Effect) -> Rule:
    """A rule whose remedies are these edits."""
    ids = (edit_id,) if isinstance(edit_id, str) else edit_id
    return states(name, *effects, remedies=tuple(Remedy("Change it", edit_id=one) for one in ids))


EAGER = edit("eager-step", "run-eagerly-off", part(10, "x"))
COMPILED = edit("unfused-elementwise", "jit-compile", part(30, "y"))
SEVERAL = edit("small-batch", "steps-per-execution", Effect(Stage.HOST, 0.1))


def follow(*rules: Rule, chart: Chart | None = None) -> Order | None:
    chart = chart or chart_of(**COMPUTE)
    return order(chart, engine.examine(chart, rules))


def turns(found: Order | None) -> list[tuple[str, float]]:
    return [(one.rule, round(one.ms_per_step, 6)) for one in found.turns] if found else []


def told(found: Order | None, kind: Relationship) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.rule, one.others) for one in found.relations if one.kind is kind] if found else []


# By effects


def test_changes_that_do_not_bear_on_each_other_have_no_order() -> None:
    for rules in ((states("a", part(30, "x")), states("b", part(20, "y"))), (states("alone", part(30)),), ()):
        assert follow(*rules) is None


def test_first_the_input_then_the_batch_size() -> None:
    chart = overlapped(50.0, input=40.0, device=6.0, host=4.0)
    assert turns(follow(BATCH, MAP, chart=chart)) == [("sequential-map", 40.0), ("small-batch", 2.0)]


def test_first_the_input_then_the_precision() -> None:
    found = follow(MATMUL, MAP, chart=bound_by_input())
    assert turns(found) == [("sequential-map", 40.0), ("float32-matmul", 4.0)]
    assert sentences(found) == (
        "Fix sequential-map (saves 40.0 ms) first, then float32-matmul (saves 4.00 ms more).",
    )


def test_of_two_changes_to_one_stage_the_larger_leaves_little_or_nothing() -> None:
    """A map of 50 ms of which a cache leaves nothing, and more threads a third."""
    cache = states("uncached-preprocessing", Effect(Stage.INPUT, 0.0, "map"))
    threads = states("sequential-map", Effect(Stage.INPUT, 1 / 3, "map"))
    found = follow(cache, threads, chart=bound_by_input())
    assert turns(found) == [("uncached-preprocessing", 40.0)]
    assert told(found, Relationship.UNNEEDED) == [("sequential-map", ("uncached-preprocessing",))]
    assert sentences(found) == ("Once uncached-preprocessing is fixed, sequential-map saves nothing more.",)


def test_what_a_change_saves_is_told_as_it_is_after_the_others() -> None:
    """In 16-bit precision half of the time is left to save by fewer channels."""
    half = states("float32-matmul", Effect(Stage.DEVICE, 0.5, "conv", ms(80.0)))
    fewer = states("unaligned-dimension", Effect(Stage.DEVICE, 0.75, "conv", ms(80.0)))
    assert turns(follow(half, fewer)) == [("float32-matmul", 40.0), ("unaligned-dimension", 10.0)]


def test_changes_that_gain_only_together_come_one_after_the_other() -> None:
    light = states("light-model", Effect(Stage.DEVICE, 0.1))
    found = follow(MAP, light, chart=overlapped(100.0, device=100.0))
    assert turns(found) == [("light-model", 0.0), ("sequential-map", 90.0)]
    assert sentences(found)[0].startswith(
        "Fix light-model (saves nothing alone) first, then sequential-map (saves 90.0 ms more)"
    )


def test_a_ceiling_for_a_whole_stage_gives_way_to_what_is_about_its_parts() -> None:
    found = follow(INPUT, MAP, MATMUL, chart=bound_by_input())
    assert turns(found) == [("sequential-map", 40.0), ("float32-matmul", 4.0)]
    assert told(found, Relationship.CEILING) == [("input-bound", ("sequential-map",))]
    assert sentences(found)[1] == (
        "The saving of input-bound is an upper bound for the whole input time; sequential-map names a cause: "
        "fix that first, then record again."
    )


def test_a_ceiling_alone_has_its_turn() -> None:
    assert turns(follow(INPUT, MATMUL, chart=bound_by_input())) == [("input-bound", 40.0), ("float32-matmul", 4.0)]


# By what edits do


def test_what_runs_eagerly_is_mended_before_it_is_compiled() -> None:
    found = follow(COMPILED, EAGER)
    assert turns(found) == [("eager-step", 10.0), ("unfused-elementwise", 30.0)]
    assert told(found, Relationship.FIRST) == [("unfused-elementwise", ("eager-step",))]
    assert "Fix eager-step before unfused-elementwise: XLA cannot compile" in sentences(found)[1]


def test_the_compiler_and_the_fused_layer_exclude_each_other() -> None:
    found = follow(edit("unfused-batch-norm", "fused-batch-norm", part(10, "x")), COMPILED)
    assert told(found, Relationship.INSTEAD) == [("unfused-batch-norm", ("unfused-elementwise",))]
    assert any("not both: XLA fuses" in sentence for sentence in sentences(found))


def test_callbacks_are_mended_before_several_steps_are_run_at_once() -> None:
    callbacks = states("between-steps", Effect(Stage.BETWEEN, 0.0))
    found = follow(SEVERAL, callbacks, chart=chart_of(device=50.0, host=30.0, between=20.0))
    assert turns(found) == [("between-steps", 20.0), ("small-batch", 27.0)]
    assert told(found, Relationship.FIRST) == [("small-batch", ("between-steps",))]


def test_one_finding_with_both_edits_does_not_contradict_itself() -> None:
    assert follow(edit("one", ("jit-compile", "fused-batch-norm"), part(30))) is None


def test_findings_that_each_have_both_sides_do_not_contradict_each_other() -> None:
    """Both are about the time between steps, and both propose several steps in one call."""
    both = [
        edit(name, "steps-per-execution", Effect(Stage.BETWEEN, 0.5, name, ms(10))) for name in ("one", "other")
    ]
    assert follow(*both, chart=chart_of(device=50.0, between=20.0)) is None


def test_several_that_go_first_are_named_in_one_sentence() -> None:
    callbacks = states("between-steps", Effect(Stage.BETWEEN, 0.0, "callbacks", ms(10)))
    outliers = states("step-outlier", Effect(Stage.BETWEEN, 0.0, "checkpoints", ms(10)))
    found = follow(SEVERAL, callbacks, outliers, chart=chart_of(device=50.0, host=30.0, between=20.0))
    assert told(found, Relationship.FIRST) == [("small-batch", ("between-steps", "step-outlier"))]
    assert turns(found)[-1] == ("small-batch", 27.0)
    assert sentences(found)[1].startswith("Fix between-steps and step-outlier before small-batch: ")


def test_edits_have_an_order_also_where_no_saving_can_be_computed() -> None:
    found = follow(edit("eager-step", "run-eagerly-off"), edit("other", "jit-compile"), chart=Chart([]))
    assert turns(found) == []
    assert told(found, Relationship.FIRST) == [("other", ("eager-step",))]


def test_nothing_is_promised_of_distorted_steps() -> None:
    assert follow(INPUT, MATMUL, chart=chart_of(input=40.0, device=10.0, slowdown=2.0)) is None


# The results in that order


def test_results_stand_in_the_order_of_their_turns() -> None:
    chart, note = chart_of(**COMPUTE), states("plain", severity=Severity.NOTE)
    results = engine.examine(chart, [EAGER, COMPILED, note])
    assert [one.rule.name for one in results] == ["unfused-elementwise", "eager-step", "plain"]
    after = [one.rule.name for one in in_order(results, order(chart, results))]
    assert after == ["eager-step", "unfused-elementwise", "plain"]
    assert in_order(results, None) == results


shares = st.floats(0, 1).map(lambda share: round(share, 6))
"""What a change leaves; of a share of 1e-300 nothing can be divided, nor does any rule state one."""

stated = st.builds(
    Effect,
    stage=st.sampled_from([Stage.DEVICE, Stage.HOST, Stage.BETWEEN]),
    scales=shares,
    subject=st.sampled_from(["", "a", "b"]),
    of=st.floats(0, 40).map(lambda time: ms(round(time, 3))),
    bound=st.sampled_from(Bound),
) | st.builds(Effect, stage=st.just(Stage.INPUT), scales=shares, subject=st.sampled_from(["", "map"]))


@given(
    made=st.floats(0, 60).map(lambda time: round(time, 3)),
    changes=st.lists(
        st.tuples(stated, st.sampled_from(["", "jit-compile", "run-eagerly-off", "fused-batch-norm"])), max_size=5
    ),
)
def test_turns_add_up_and_no_advice_is_lost(made: float, changes: list[tuple[Effect, str]]) -> None:
    """Turns save what all of them save together, never less than nothing, and each rule has one at most."""
    chart = overlapped(made, device=40.0, host=10.0, input=10.0)
    rules = [edit(f"rule-{n}", edit_id, effect) for n, (effect, edit_id) in enumerate(changes)]
    results = engine.examine(chart, rules)
    found = order(chart, results)
    names = [rule for rule, _ in turns(found)]
    assert len(names) == len(set(names))
    assert all(saves >= 0 for _, saves in turns(found))
    model = chart.fact(StepModel)
    together = model.saving([effect for n, (effect, _) in enumerate(changes) if f"rule-{n}" in names])
    assert sum(saves for _, saves in turns(found)) == pytest.approx(together, abs=1e-4)
    assert sorted(r.rule.name for r in in_order(results, found)) == sorted(r.rule.name for r in results)
    assert all("\n" not in sentence for sentence in sentences(found))
