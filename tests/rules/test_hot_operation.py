"""hot-operation: what takes long for its bytes and FLOPs, where no other finding explains it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.cases import hot_operation as built
from tests.rules.cases.hot_operation import example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.savings.layer_work import CalledLayer, LayerCall, LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown, TracingCost
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine
from tfdoctor.rules.hot_operation.cheaper_forms import CheaperForm, CheaperForms, FormKind
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import (
    Bound,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Severity,
    Stage,
    StepWork,
    Verdict,
)

AT = Location("train.py", 14)


def group(
    kind: str = "Unique", time_ms: float = 10.0, least: float | None = 0.1, calls: float = 1.0, **more: Any
) -> OperationGroup:
    return built.group(kind, time_ms, least, calls, **more)


def check(
    *groups: OperationGroup, left: float = 30.0, host: float = 0.0, dispatching: float = 0.0, **more: Any
) -> Verdict:
    """Judge groups of steps of 40 ms."""
    parts: dict[str, float] = {Stage.DEVICE: left, Stage.HOST: host}
    waits = TimedLine(AT, 9, dispatching, work=LineWork.DISPATCHING)
    return example(
        *groups,
        step=Breakdown.of(device=30.0, host=10.0),
        left={part: ms for part, ms in parts.items() if ms},
        lines=HostLines({Stage.HOST: (waits,)}),
        **more,
    )


@pytest.mark.parametrize(
    ("time_ms", "least", "kind"),
    [(4.0, 0.1, Finding), (3.99, 0.1, Healthy), (10.0, 4.99, Finding), (10.0, 5.0, Healthy)],
)
def test_time_and_distance_decide(time_ms: float, least: float, kind: type) -> None:
    assert isinstance(check(group(time_ms=time_ms, least=least)), kind)


@pytest.mark.parametrize(("time_ms", "kind"), [(0.2, Finding), (0.199, Healthy)])
def test_what_tracing_itself_may_add_is_not_reported(time_ms: float, kind: type) -> None:
    step = Breakdown.of(device=0.3, host=0.1)
    short = example(group(time_ms=time_ms, least=0.0), step=step, left={Stage.DEVICE: 0.3})
    assert isinstance(short, kind)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (("MatMul", 20.0, None), "MatMul at train.py:14 takes 50 % of the step, and nothing measured shows"),
        (("Unique", 20.0, None), "Unique at train.py:14 takes 50 % of the step, and nothing measured shows"),
        (("Conv2D", 20.0, 16.6), "Conv2D at train.py:14 takes 50 % of the step at 83 % of what this hardware"),
    ],
)
def test_what_only_takes_long_is_healthy_with_its_number(made: tuple[str, float, float | None], told: str) -> None:
    """Trap: a convolution of unknown peak, far below this run's fastest, in a healthy network."""
    slower = group(*made, gflop_s=12.0, best_gflop_s=90.0)
    assert as_healthy(check(slower)).summary.startswith(told)


def test_a_line_has_one_change_and_evidence_the_time_of_all() -> None:
    finding = as_finding(check(group("Unique", 9.0), group("Sort", 6.0)))
    (remedy,) = finding.remedies
    assert "Unique" in remedy.action
    assert "?" not in remedy.action
    assert "15.0" not in finding.summary
    times = {one.label: one.value.value for one in finding.evidence if isinstance(one, Measure)}
    assert times["time in this and one more group of operations, per step"] == 15.0
    assert sum(effect.of.value for effect in finding.effects if effect.of) == pytest.approx(15.0)


TRACED = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)


@pytest.mark.parametrize(
    ("tracing", "left", "takes", "step"),
    [(None, 30.0, 9.0, 40.0), (None, 6.0, 6.0, 40.0), (TRACED, 30.0, 9.0 * TRACED.kept("device"), 20.0)],
    ids=["as traced", "partly named", "without the profiler"],
)
def test_a_finding_states_one_time(tracing: TracingCost | None, left: float, takes: float, step: float) -> None:
    """The summary, the list, the share and the table: of the 9 of 30 ms, the profiler has its part."""
    exposed = tracing.untraced if tracing else Breakdown.of(device=30.0, host=10.0).median
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, tracing=tracing)
    finding = as_finding(check(group("Unique", 9.0), group("Sort", 6.0), left=left, model=model))
    assert finding.takes is not None
    assert finding.takes.value == pytest.approx(takes)
    assert f"takes {milliseconds(finding.takes.value)} of " in finding.summary
    share = finding.evidence[0]
    assert isinstance(share, Measure)
    assert share.value.value == pytest.approx(finding.takes.value / step)


def test_what_only_the_profiler_makes_long_is_not_reported() -> None:
    """4.5 of 40 traced ms are 2.0 of 20: the limit is a tenth."""
    model = StepModel(device=DeviceKind.CPU, exposed=TRACED.untraced, tracing=TRACED)
    assert isinstance(check(group("Unique", 4.5), model=model), Healthy)
    assert isinstance(check(group("Unique", 4.6), model=model), Finding)


def test_python_in_the_graph_is_named() -> None:
    finding = as_finding(check(group("PyFunc", least=None)))
    assert finding.remedies[0].action.startswith("PyFunc runs Python")


def test_explained_operations_are_not_reported_again() -> None:
    one = group()
    assert isinstance(check(one, subjects=frozenset((one.rows[0].name,))), Healthy)
    assert isinstance(check(one, left=0.0), Healthy)


def test_the_effects_name_the_time_of_the_summary() -> None:
    """At most what is unexplained, so that the summary, the list and the evidence state one time."""
    finding = as_finding(check(group(time_ms=10.0, least=1.0), group("Sort", 10.0, 1.0), left=10.0))
    assert [effect.scales for effect in finding.effects] == [0.0, 0.0]
    assert sum(effect.of.value for effect in finding.effects if effect.of) == pytest.approx(10.0)
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}


@pytest.mark.parametrize(("calls", "kind"), [(100.0, Finding), (99.0, Healthy)])
def test_a_hundred_short_operations_of_a_line_are_many(calls: float, kind: type) -> None:
    assert isinstance(check(group("Mul", 0.5, None, calls), host=5.0, dispatching=20.0), kind)


def test_an_optimizer_s_short_operations_are_not_the_user_s() -> None:
    """Trap: apply_gradients of a plain loop, on whose line Keras updates each variable."""
    short = group("Mul", 5.0, None, 900.0)
    assert isinstance(check(short), Finding)
    assert isinstance(check(short, optimizer=OptimizerWork(short.rows, 900.0)), Healthy)


@pytest.mark.parametrize(("each_ms", "kind"), [(0.01, Finding), (0.0101, Healthy)])
def test_short_operations_of_a_loop_count_together(each_ms: float, kind: type) -> None:
    kinds = ("Mul", "AddV2", "Tanh")
    loop = [group(kind, 200 * each_ms, 100 * each_ms + 1, 200.0, loop="map/while", loop_at=AT) for kind in kinds]
    assert isinstance(check(*loop), kind)


def test_the_host_s_time_to_dispatch_belongs_to_short_operations() -> None:
    short = group("Mul", 1.0, None, 400.0)
    finding = as_finding(check(short, host=5.0, dispatching=6.0))
    assert "dispatching included" in finding.summary
    (host,) = (effect for effect in finding.effects if effect.stage is Stage.HOST)
    assert host.of is not None
    assert host.of.value == pytest.approx(5.0)
    named = frozenset((StepWork.LAUNCHING,))
    assert isinstance(check(short, host=5.0, dispatching=6.0, subjects=named), Healthy)


@pytest.mark.parametrize(("scheduling", "loop_ms"), [(8.0, 8.0), (6.0, 6.0), (9.0, 8.0)])
def test_the_time_to_dispatch_in_a_loop_belongs_to_its_operations(scheduling: float, loop_ms: float) -> None:
    """Trap: the short operations of an optimizer, as many as the recorded ones of the loop."""
    looped = group("Mul", 0.1, None, 200.0, loop="gru/while", loop_at=Location("train.py", 10))
    adam = group("Pow", 4.5, None, 500.0)
    work = LoopWork((GraphLoop("gru/while", 100.0, 200.0, 0.1),), scheduling)
    finding = as_finding(check(looped, adam, host=8.0, dispatching=8.0, loops=work))
    host = {e.subject: e.of.value for e in finding.effects if e.stage is Stage.HOST and e.of}
    assert host.pop("dispatching gru/while") == pytest.approx(loop_ms)
    assert sum(host.values()) == pytest.approx(8.0 - loop_ms)


def test_two_loops_of_a_line_and_explained_operations_have_their_own_part() -> None:
    """Trap: a bidirectional layer, of whose 800 operations a specific finding names 400."""
    ways = [group(kind, 0.5, None, 200.0, loop=f"{kind}/while", loop_at=AT) for kind in ("Mul", "Add")]
    named = group("Tanh", 0.5, None, 400.0, loop="Mul/while", loop_at=AT)
    work = LoopWork((GraphLoop("Mul/while", 100.0, 800.0, 1.5),), 24.0)
    subjects = frozenset((named.rows[0].name,))
    finding = as_finding(check(*ways, named, host=24.0, dispatching=24.0, loops=work, subjects=subjects))
    host = {e.subject: e.of.value for e in finding.effects if e.stage is Stage.HOST and e.of}
    assert host == pytest.approx({"dispatching Mul/while": 6.0, "dispatching Add/while": 6.0})


def test_a_trace_without_names_is_not_judged() -> None:
    assert isinstance(check(unnamed="XLA compiled the step"), NotApplicable)


def test_operations_near_the_hardware_s_rates_are_necessary_work() -> None:
    near, far = group("Conv2D", 20.0, 14.0), group("Unique", 3.0, 0.1)
    verdict = as_healthy(check(near, far))
    (time,) = verdict.necessary
    assert (time.part, time.of.value) == (Stage.DEVICE, 20.0)
    assert "70 %" in time.why


@pytest.mark.parametrize("compiled", [True, False])
def test_short_operations_that_xla_compiled_are_not_to_be_compiled(*, compiled: bool) -> None:
    made = Operation(name="f", type="mul (fused)", compiled=compiled)
    made = replace(made, direct=True)
    row = OperationTime(name="f", type=made.type, ms=9.0, calls=3000.0, at=AT, operation=made)
    many = OperationGroup(type=made.type, at=AT, layers=(), rows=(row,), least_ms=0.1)
    assert ("jit_compile" in as_finding(check(many)).remedies[0].action) != compiled


def test_a_matmul_is_not_moved_to_the_input_pipeline() -> None:
    assert "input pipeline" not in as_finding(check(group("MatMul", 20.0, 2.0))).remedies[0].action


@pytest.mark.parametrize(("time_ms", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_what_only_metrics_use_counts_together(time_ms: float, kind: type) -> None:
    used = [group(name, time_ms, 0.9 * time_ms, only_metrics=True, metrics=("auc",)) for name in ("Cast", "Tile")]
    verdict = check(*used)
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert verdict.summary.startswith("auc (metrics) at train.py:14 take 2.00 ms")
        assert verdict.severity is Severity.WARNING


def test_what_depends_on_constants_only_is_computed_once() -> None:
    finding = as_finding(check(group("Range", 10.0, 9.0, inputs=frozenset())))
    assert finding.severity is Severity.CRITICAL
    assert finding.remedies[0].action.startswith("Compute Range once")


def small(kind: str, names: int = 2) -> OperationGroup:
    rows = tuple(OperationTime(name=f"{kind}{n}", type=kind, ms=2.0, at=AT) for n in range(names))
    return OperationGroup(type=kind, at=AT, layers=(), rows=rows, missing="shapes unknown")


def form(kind: FormKind, *names: str, left: float = 0.0) -> CheaperForms:
    return CheaperForms((CheaperForm(kind, AT, frozenset(names), "of 96 values one is used", left),))


def test_a_cheaper_form_is_as_severe_as_what_it_saves_at_most() -> None:
    svd, rest = small("Svd", 4), group("Unique", 9.0, None)
    names = [row.name for row in svd.rows]
    finding = as_finding(check(svd, rest, forms=form(FormKind.LARGEST_SINGULAR_VALUE, *names)))
    assert finding.summary == "Svd at train.py:14 takes 8.00 ms of each step; of 96 values one is used"
    assert finding.severity is Severity.CRITICAL
    assert "power iteration" in finding.remedies[0].action
    half = form(FormKind.CONVOLUTION_AFTER_RESIZE, *names, left=0.5)
    finding = as_finding(check(svd, rest, forms=half))
    assert finding.severity is Severity.WARNING
    assert {effect.subject for effect in finding.effects} == set(names)


@pytest.mark.parametrize(("time_ms", "kind"), [(4.0, Finding), (3.99, Healthy)])
def test_a_cheaper_form_of_little_time_is_not_reported(time_ms: float, kind: type) -> None:
    sort = group("TopKV2", time_ms, None)
    assert isinstance(check(sort, forms=form(FormKind.FEW_OF_A_SORT, "TopKV2")), kind)


@pytest.mark.parametrize(("time_ms", "kind"), [(20.0, Finding), (19.9, Healthy)])
def test_a_softmax_over_many_classes_is_reported_where_it_dominates(time_ms: float, kind: type) -> None:
    """Trap: a language model, whose loss takes a third of the step: sampling trains another objective."""
    loss = group("SparseSoftmaxCrossEntropyWithLogits", time_ms, None)
    forms = form(FormKind.LARGE_SOFTMAX, loss.type)
    assert isinstance(check(loss, forms=forms), kind)


def of_layer(calls: float = 1.0, time_ms: float = 10.0, *, direct: bool = False) -> OperationGroup:
    """An operation of a layer whose arithmetic may be necessary: its rate is the best of the run."""
    made = Operation(name="dense_1/MatMul", type="MatMul", layer="dense", at=AT, direct=direct)
    row = OperationTime(
        name=made.name, type="MatMul", ms=time_ms, calls=calls, layer="dense", at=AT, operation=made
    )
    return OperationGroup(type="MatMul", at=AT, layers=("dense",), rows=(row,), missing="shapes unknown")


def called(repeated_ms: float | None) -> LayerCalls:
    """A layer that helpers of lines 30 and 31 call twice, from line 22."""
    inner = Location("train.py", 22)
    calls = tuple(
        LayerCall(f"dense_{n}", inner, Location("train.py", 30 + n), repeated_ms or 1.0, (f"dense_{n}/MatMul",))
        for n in range(2)
    )
    return LayerCalls((CalledLayer("dense", calls, (calls,) if repeated_ms else ()),))


def test_a_layer_that_is_called_twice_on_other_inputs_is_healthy() -> None:
    assert isinstance(check(of_layer(), calls=called(None)), Healthy)


def repeated(time_ms: float) -> OperationGroup:
    """The operations of both calls of the layer."""
    made = [Operation(name=f"dense_{n}/MatMul", type="MatMul", layer="dense", at=AT) for n in (0, 1)]
    rows = tuple(
        OperationTime(name=one.name, type="MatMul", ms=time_ms, layer="dense", operation=one) for one in made
    )
    return OperationGroup(type="MatMul", at=AT, layers=("dense",), rows=rows)


@pytest.mark.parametrize(("again", "severity"), [(8.0, Severity.CRITICAL), (2.0, Severity.WARNING), (1.9, None)])
def test_repeating_a_computation_is_as_severe_as_its_time(again: float, severity: Severity | None) -> None:
    """Of a step of 40 ms; the repeated call can be left out whole, and the first cannot."""
    verdict = check(repeated(again), calls=called(again))
    assert isinstance(verdict, Finding if severity else Healthy)
    if isinstance(verdict, Finding):
        assert verdict.severity is severity
        assert "train.py:30, train.py:31" in verdict.remedies[0].action
        assert [effect.subject for effect in verdict.effects] == ["dense_1/MatMul"]


@pytest.mark.parametrize(("direct", "kind"), [(False, Healthy), (True, Finding)])
def test_the_short_operations_of_a_layer_are_not_the_user_s(*, direct: bool, kind: type) -> None:
    """Trap: an unrolled GRU, whose operations Keras chose."""
    assert isinstance(check(of_layer(calls=2000.0, direct=direct)), kind)
