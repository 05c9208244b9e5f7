"""From a recording to a diagnosis: over the real traces, without a trace, and with a defect in a fact."""

from scripts.fact_index import measured
from tests.diagnose.kit import *
from tfdoctor.diagnose.diagnose import chart_of as chart_from

TRACES = Path(__file__).parents[2].parent / "shared" / "traces"
NAMES = sorted(p.name for p in TRACES.glob("*") if list(p.rglob("*.xplane.pb")))
READABLE = [name for name in NAMES if "corrupt" not in name]
OF_THE_HOST = {"between-steps", "busy-workers", "eager-step", "memory-headroom", "recompilation", "retracing"}
OF_THE_HOST |= {"thread-limit"}
OF_THE_INPUT = {"input-bound", "missing-prefetch", "per-element-map", "python-input", "sequential-map"}
OF_THE_INPUT |= {"serial-batch", "serial-reads", "slow-storage", "small-files"}
real = pytest.mark.skipif(not NAMES, reason="the real traces are not here")


@cache
def of(name: str) -> Diagnosis:
    return diagnose(Recording.open(TRACES / name), all_rules(), name, ask_xprof=False)


def result(name: str, rule: str) -> Result:
    return next(one for one in of(name).results if one.rule.name == rule)


# The real traces
@real
@each(*READABLE)
def test_every_rule_has_an_answer(name: str) -> None:
    found = of(name)
    errors = [r.outcome for r in found.results if isinstance(r.outcome, Errored)]
    assert errors == []
    assert len(found.results) == len(all_rules())


@real
@each(*READABLE)
def test_what_is_shown_adds_up(name: str) -> None:
    steps = of(name).steps
    assert bool(steps.rows) != bool(steps.missing)
    for row in steps.rows:
        assert sum(row.parts_ms.values()) == pytest.approx(row.total_ms)
        assert min(row.parts_ms.values()) >= 0
    if steps.breakdown_ms and of(name).operations:
        total = sum(row.self_ms for row in of(name).operations)
        assert total == pytest.approx(steps.breakdown_ms["device"])


@real
@cases(
    ("v100x8-bert-partial-step", 21.3, 14.9, 0.035, 2.2),
    ("tf24-v100-input-wait", 62_185, 41.6, 22.6, 62_116),
    ("tf24-v100-resnet50-fp32", 406.0, 363.7, 28.8, None),
    ("tf23-p4-alexnet-fp32", 201.0, 160.3, 24.9, 0.134),
    ("tf24-rtx2060-launch-bound", 10.6, 1.34, 0.04, 0.13),
    ("tf24-t4-lenet", 9.0, 5.7, 0.088, None),
    ("tf2-macos-cpu-lenet", 89.2, None, 0.0, 0.07),
    ("tf24-laptop-gpu-no-cupti", 252.5, 0.0, 0.0, 0.072),
)
def test_the_figures_are_those_measured_by_hand(
    name: str, step: float, kernels: float | None, copies: float, waiting: float | None
) -> None:
    """As the traces' README has them; None where the wait lies outside of the step, or no kernels are."""
    found = of(name).steps
    assert found.median_ms == pytest.approx(step, rel=0.05)
    assert found.breakdown_ms
    assert found.breakdown_ms["transfer"] == pytest.approx(copies, rel=0.05)
    if kernels is not None:
        assert found.breakdown_ms["device"] == pytest.approx(kernels, rel=0.05)
    if waiting is not None:
        assert found.breakdown_ms["input"] == pytest.approx(waiting, rel=0.05)


@real
def test_a_minute_of_waiting_is_found_and_hides_the_precision() -> None:
    name = "tf24-v100-input-wait"
    assert isinstance(result(name, "input-bound").outcome, Finding)
    hidden = result(name, "float32-matmul")
    assert isinstance(hidden.outcome, Finding)
    assert of(name).steps.too_few  # a single step says nothing of others
    assert (hidden.saving, hidden.severity, of(name).together) == (None, Severity.NOTE, None)


@real
def test_float32_on_a_v100_is_found_and_on_a_p4_is_not() -> None:
    outcome = as_finding(result("tf24-v100-resnet50-fp32", "float32-matmul").outcome)
    assert "float16" in outcome.remedies[0].code
    model = chart_from(Recording.open(TRACES / "tf24-v100-resnet50-fp32")).fact(StepModel)
    products, kernels, step = 226, 363.7, 406  # ms; what is no product moves half the bytes
    at_most = (products * 7 / 8 + (kernels - products) / 2) / step
    assert model.saving(outcome.effects) / model.step_ms == pytest.approx(at_most, rel=0.05)
    assert isinstance(result("tf23-p4-alexnet-fp32", "float32-matmul").outcome, NotApplicable)


@cases(
    ("tf24-v100-resnet50-fp32", "input-bound"),  # compute-bound steps are not called input-bound
    ("tf23-p4-alexnet-fp32", "input-bound"),
    ("tf24-t4-lenet", "input-bound"),
    ("tf2-macos-cpu-lenet", "input-bound"),
    ("tf24-rtx2060-launch-bound", "float32-matmul"),  # launching limits it: faster kernels save nothing
)
@real
def test_a_trace_without_the_fault_is_healthy(name: str, rule: str) -> None:
    assert isinstance(result(name, rule).outcome, Healthy)


@real
def test_batches_from_a_python_generator_are_found() -> None:
    found = as_finding(result("v100x8-bert-partial-step", "python-input").outcome)
    assert "Generator" in found.summary
    assert of("v100x8-bert-partial-step").subject.devices_visible == 8


@real
def test_kernels_that_were_not_recorded_are_said_to_be_missing_and_nobody_calls_them_healthy() -> None:
    found = of("tf24-laptop-gpu-no-cupti")
    said = [text for text in found.unrecorded if "kernels were not recorded" in text]
    assert ("CUPTI" in said[0], "LD_LIBRARY_PATH" in said[0]) == (True, True)
    assert (found.trust.level, sure(found.steps.breakdown_ms)["unknown"]) == ("low", near(252.4, rel=0.01))
    healthy = {r.rule.name for r in found.results if isinstance(r.outcome, Healthy)}
    assert healthy <= OF_THE_HOST | OF_THE_INPUT


@real
def test_a_damaged_trace_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError) as refused:
        of("tpu-v6e-jax-corrupt")
    assert re.fullmatch(r"[^\n]+\.", str(refused.value))


# Where there is little to read
def empty(**parts: Any) -> Diagnosis:
    bare = Recording(None, None, (), None, (), ())
    return diagnose(replace(bare, **parts), all_rules(), "t")


def test_a_recording_without_a_trace_is_diagnosed_all_the_same() -> None:
    why = "the run ended before the traced window began"
    found = empty(manifest=manifest(missing=(Missing("trace", why),)))
    assert found.steps.missing == why
    assert (found.xprof, found.together, found.pipeline, found.operations) == (None, None, (), ())
    assert (found.pipeline_missing, found.operations_missing) == (why, why)
    assert not any(isinstance(r.outcome, Errored | Healthy) for r in found.results)
    assert found.trust.level == "low"


def test_a_program_without_a_trace_claims_nothing_about_its_run() -> None:
    layer = RecordedLayer("bn", "BatchNormalization")
    found = empty(program=ProgramRecord(layers=(layer,)), manifest=manifest())
    healthy = {result.rule.name for result in found.results if isinstance(result.outcome, Healthy)}
    assert healthy == {"thread-limit"}  # which reads settings


@each(1, 2)
def test_hosts_are_compared_where_there_are_several(hosts: int, tmp_path: Path) -> None:
    traces = []
    for n in range(hosts):
        path = tmp_path / f"host{n}.xplane.pb"
        path.write_bytes(b"\x0a\x0d\x08\x01\x12\x09/host:CPU")
        traces.append(path)
    found = diagnose(Recording(None, None, tuple(traces), None, (), ("a note",)), all_rules(), "t", ask_xprof=False)
    assert found.unrecorded[0] == "a note"
    assert (found.hosts is not None) is (hosts == 2)


# Runs without a trace, or with one that a full disk cut off
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-outside-steps"
SCRIPT = RunLog(
    RunProcess(pid=1, started_unix_ns=1, started_monotonic_ns=1),
    {0: CallPlace(0, RunCall.SCRIPT)},
    {},
    (Bucket(0.0, 5.0, {"0": 5000.0}),),
    end=ProcessEnd(5.0, "exit"),
)
NO_TENSORFLOW = Missing(MissingPart.TRACE, "the script did not import TensorFlow")


def cut(folder: Path, size: int) -> Path:
    """Return a copy of the sample, with so many bytes left of its trace."""
    copy = Path(shutil.copytree(SAMPLE, folder / "cut"))
    (trace,) = copy.rglob("*.xplane.pb")
    trace.write_bytes(trace.read_bytes()[:size])
    return copy


@cases(
    (SCRIPT, replace(manifest(), plan=CapturePlan(trace=False))),
    (SCRIPT, replace(manifest(), plan=CapturePlan(trace=False), steps=StepsSeen(seen=500))),
    (SCRIPT, replace(manifest(), missing=(NO_TENSORFLOW,))),
    (SCRIPT, replace(manifest(), missing=(NO_TENSORFLOW,), outcome=Ending(3))),
    (replace(SCRIPT, end=None), replace(manifest(), outcome=Ending(137, 9))),
    (replace(SCRIPT, end=None, buckets=()), replace(manifest(), finished=False)),
    ids=["no-trace", "no-trace-trains", "no-tensorflow", "failed", "killed", "at-once"],
)
def test_every_rule_says_why_it_has_nothing_to_say(log: RunLog, of: Manifest) -> None:
    opened = replace(recording(), manifest=of, run=log)
    rules = all_rules()
    found = diagnosed(opened)
    outcomes = {result.rule.name: result.outcome for result in found.results}
    assert set(outcomes) == {rule.name for rule in rules}
    assert not {name: one for name, one in outcomes.items() if isinstance(one, Errored)}
    assert all(one.reason for one in outcomes.values() if isinstance(one, NotApplicable))
    for name in FORMATS:
        assert render(name, found)
    assert json.loads(render("json", found))["steps"]["count"] == 0


@each(0, 5000, ids=["empty", "cut off"])
def test_the_run_is_judged_without_its_trace(size: int, tmp_path: Path) -> None:
    recording = Recording.open(cut(tmp_path, size))
    found = diagnosed(recording)

    assert sure(found.run).of(Phase.PREDICTION) > 0
    assert not found.steps.rows
    assert any("is damaged, so the report has no traced steps" in text for text in found.trust.reasons)


@each(0, 5000, ids=["empty", "cut off"])
def test_without_a_run_there_is_nothing_to_judge(size: int, tmp_path: Path) -> None:
    copy = cut(tmp_path, size)
    for log in copy.rglob("run*.json*"):
        log.unlink()
    with pytest.raises(InputError, match="xplane"):
        diagnosed(Recording.open(copy))


CONVNET = "synthetic-gpu-a100-fp32"


# A defect in one fact neither takes a report down nor disappears
def report(sample: str) -> Diagnosis:
    return diagnosed(Recording.open(SAMPLE.parent / sample))


def break_(monkeypatch: pytest.MonkeyPatch, fact: type) -> None:
    original = fact.measure  # type: ignore[attr-defined]  # every class given here has one

    def measure(**given: object) -> object:
        del given
        return 1 / 0

    measure.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]  # inspect reads it
    monkeypatch.setattr(fact, "measure", measure)


@pytest.fixture(scope="module")
def asked() -> set[type]:
    """The facts that a report on the sample measures: a defect in another one changes nothing."""
    found: set[type] = set()

    def noted(fact: type, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def measure(**given: object) -> object:
            found.add(fact)
            return original(**given)

        return measure

    with pytest.MonkeyPatch.context() as patch:
        for fact in measured():
            patch.setattr(fact, "measure", noted(fact, fact.measure))  # type: ignore[attr-defined]  # each has one
        report(CONVNET)
    return found


@cases((TpuLaunches, "synthetic-tpu-v5e-padded"), (OneDnn, "cpu-float32-convnet"))
def test_a_defect_in_a_fact_that_no_rule_uses_is_shown_once(
    fact: type, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = report(sample)
    break_(monkeypatch, fact)
    broken = report(sample)
    reason = f"tfdoctor failed to measure {fact.__name__} (ZeroDivisionError"
    assert sum(reason in said for said in broken.trust.reasons) == 1
    assert [type(r.outcome) for r in broken.results] == [type(r.outcome) for r in healthy.results]
    assert broken.trust.level == healthy.trust.level
    assert fact.__name__ in html.render(broken)


@pytest.mark.parametrize("fact", measured(), ids=lambda fact: fact.__name__)
def test_no_defect_of_a_fact_takes_the_report_down(
    monkeypatch: pytest.MonkeyPatch, asked: set[type], fact: type
) -> None:
    if fact not in asked:
        return
    break_(monkeypatch, fact)
    broken = report(CONVNET)
    assert md.render(broken)
    assert json_format.render(broken)
    shown = [said for said in broken.trust.reasons if "ZeroDivisionError" in said]
    assert len(shown) <= 1


def test_the_facts_are_found(asked: set[type]) -> None:
    assert {Device, OneDnn, TpuLaunches} <= set(measured())
    assert len(asked) > 60


# A finding about time that few traced steps have, and the run's other steps lack, is none about the run
STEP_MS = 10.0
WAITS_ONCE = (40.0,) * 5 + (0.0,) * 15
"""Ms of input in the traced steps: the first five wait, as after the start of the profiler."""
WAITS = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
EVEN = steps_of(500, STEP_MS)
UNEVEN = steps_of(500, STEP_MS, LongSteps(count=50, ms=4_500.0, beyond_ms=4_000.0))
RUN, WINDOW = phases_of({Phase.STEPS: 1.0}), phases_of({Phase.STEPS: 1.0}, whole=False)


def untraced(beyond_ms: float, count: int = 200) -> UntracedPace:
    """Steps of 10 ms outside of the window, and what long ones add to each."""
    total = count * (STEP_MS + beyond_ms)
    return UntracedPace(1.0, STEP_MS, UntracedSteps(count=count, median_ms=STEP_MS, of="steps", total_ms=total), 20)


def traced(waits: Sequence[float], *more: object) -> Chart:
    """Traced steps of 10 ms of the device and these waits for input."""
    rows = [dict.fromkeys(map(str, EXPOSED), 0.0) | {"input": w, "device": STEP_MS} for w in waits]
    steps, start = [], 0
    for number, row in enumerate(rows):
        end = start + round(sum(row.values()) * PS_PER_MS)
        steps.append(Step(number, start, end, end))
        start = end
    mean = {part: sum(row[part] for row in rows) / len(rows) for part in rows[0]}
    whole = Steps(StepSource.KERAS_FIT, tuple(steps), (True,) * len(steps))
    known = [whole, Breakdown(tuple(rows), mean), *more]
    kinds = {UntracedPace, RunSteps, RunPhases} - {type(part) for part in known}
    return Chart(known, {kind: Unavailable("no") for kind in kinds})


def outcome(chart: Chart, *effects: Effect) -> object:
    (result,) = engine.examine(chart, [states("input-bound", *(effects or (WAITS,)))])
    return result.outcome


def test_waits_of_the_first_traced_steps_are_not_the_runs() -> None:
    reason = as_not_applicable(outcome(traced(WAITS_ONCE, untraced(0.2)))).reason
    assert reason.startswith("Something is slow, but only the traced steps show it: few of them")
    assert "adds 10.0 ms to each" in reason
    assert reason.endswith("adds 0.20 ms")


@cases(
    (traced(WAITS_ONCE, untraced(6.0)), (), Finding),  # the other steps have them as well
    (traced((10.0,) * 20, untraced(0.0)), (), Finding),  # each step waits, whatever the others vary
    (traced(WAITS_ONCE), (), Finding),  # no others, or few, contradict nothing
    (traced(WAITS_ONCE, untraced(0.0, count=30)), (), Finding),
    (traced(WAITS_ONCE, EVEN, RUN), (), NotApplicable),  # the steps of the whole run contradict as well
    (traced(WAITS_ONCE, UNEVEN, RUN), (), Finding),
    (traced(WAITS_ONCE, EVEN, WINDOW), (), Finding),
    (traced(WAITS_ONCE, untraced(0.0)), (WAITS, Effect(Stage.DEVICE, 0.5, "a", ms(8))), Finding),  # about more
)
def test_waits_are_the_runs_unless_other_steps_contradict(
    chart: Chart, effects: tuple[Effect, ...], kind: type
) -> None:
    assert isinstance(outcome(chart, *effects), kind)


def test_a_finding_about_the_run_does_not_rest_on_the_window() -> None:
    window = only_traced(traced(WAITS_ONCE, untraced(0.0)))
    found = states("both", WAITS, RunEffect(phase=Phase.BOUNDARIES, of=ms(100.0))).check()
    assert window.checked(found) is found
