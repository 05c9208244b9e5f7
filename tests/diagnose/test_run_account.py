"""The account of a run, and its savings."""

from tests.diagnose.kit import *
from tests.run_logs import Run

AT = Location("train.py", 12)
STEPS_ALONE = phases_of({Phase.STEPS: 1.0})
LONG = LongSteps(count=10, ms=12_000.0, beyond_ms=10_000.0)


def account_of(phases: RunPhases, *facts: Any, epochs: int | None = None) -> RunAccount:
    return sure(run_account(run_chart(phases, *facts), epochs))


def long_account(*lines: LongLine, wait_longer: bool = False) -> RunAccount:
    steps = replace(steps_of(100, 20.0, LONG), wait_longer=wait_longer)
    return account_of(phases_of({Phase.STEPS: 12_000.0}), steps, *([RunLongLines(lines)] if lines else []))


def evaluated(at_s: float) -> RunAccount:
    """100 steps take 12 s, of which 3 s are the phase of steps, and an evaluation begins then."""
    spans = [PhaseSegment(Phase.STEPS, at, at + 1.0, AT) for at in (0.0, 4.0, 8.0)]
    spans.append(PhaseSegment(Phase.EVALUATION, at_s, at_s + 1.0, AT))
    phases = phases_of({Phase.STEPS: 3_000.0, Phase.EVALUATION: 10_500.0})
    line = run_line(Phase.EVALUATION, AT, 10_500.0)
    return account_of(replace(phases, lines=(line,), spans=tuple(spans)), steps_of(100, 20.0, LONG))


def peak(process: float | None, machine: float | None) -> RunAccount:
    ending = RunEnding(kind=EndKind.EXIT, peak_bytes=process)
    return account_of(STEPS_ALONE, None, ending, Samples(4, run_bytes=machine))


PREPARES = partial(RunLine, phase=Phase.PREPARING, at=AT)
LINES = (
    PREPARES(ms=900.0, samples=18, calls="pandas.DataFrame.iterrows"),
    PREPARES(ms=200.0, samples=4, calls="json.loads"),
)
IMPORTS = partial(RunLine, phase=Phase.IMPORTS, samples=4)
NAMES = ("sklearn.svm", "sklearn.manifold", "json", "importlib._bootstrap", "a", "b", "c", "d", "e", "f")


def imports_of(total_ms: float) -> RunPhases:
    """An eighth is imports: sklearn in two lines, json with too few samples, and six packages with enough."""
    lines = [
        IMPORTS(at=Location("train.py", at), ms=10.0 * at, calls=calls, samples=4 if at < 4 else 5)
        for at, calls in enumerate(NAMES, start=1)
    ]
    times = {Phase.IMPORTS: total_ms / 8, Phase.STEPS: total_ms * 7 / 8}
    return RunPhases(total_ms=total_ms, times=times, lines=tuple(reversed(lines)))


PLANNED = RunCalls((), epochs=2, planned_epochs=30)
EARLY = steps_of(32, 10.0), RunCalls((), epochs=1, planned_epochs=12, epoch_steps=80)
WAITS = LongLine(at=AT, ms=3_000.0, samples=60, trains=True)

ACCOUNTS = {
    "a line is named by enough samples only": account_of(
        RunPhases(total_ms=1100.0, times={Phase.PREPARING: 1100.0}, lines=LINES)
    ),
    "three lines in a function of the script, and one that leads there": account_of(
        RunPhases(
            total_ms=2000.0,
            times={Phase.PREPARING: 2000.0},
            lines=tuple(PREPARES(at=Location("load.py", n), ms=900.0, samples=18, around=(AT,)) for n in (3, 5, 7)),
        )
    ),
    "imports by package, the largest first": account_of(imports_of(59_999.0)),
    "imports of a longer run": account_of(imports_of(60_000.0)),
    **{
        name: account_of(STEPS_ALONE, None, *calls, epochs=asked)
        for name, asked, *calls in (
            ("ninety epochs are asked for", 90, RunCalls((), epochs=2)),
            ("ninety, where thirty are planned", 90, PLANNED),
            ("thirty are planned", None, PLANNED),
            ("all of thirty are over", None, RunCalls((), epochs=30, planned_epochs=30)),
            ("none are asked for or planned", None, RunCalls((), epochs=2)),
            ("ninety, of unknown calls", 90),
            ("ninety, of a run without epochs", 90, RunCalls((), epochs=0)),
        )
    },
    "of an epoch that was ended early the steps count": account_of(replace(STEPS_ALONE, ended_early=True), *EARLY),
    "an epoch that was not": account_of(STEPS_ALONE, *EARLY),
    "the peak of memory is the process'": peak(3e9, 2e9),
    "the peak of memory is that of the samples": peak(None, 2e9),
    "the peak of memory is unknown": peak(None, None),
    "long steps without samples have an unknown cause": long_account(),
    "long steps where traced ones wait have a cause": long_account(WAITS, wait_longer=True),
    "long steps that call the training": long_account(WAITS),
    "lines of other phases between training steps are the cause": evaluated(3.0),
    "an evaluation after them is no cause": evaluated(9.0),
    "no long steps": account_of(phases_of({Phase.STEPS: 2_000.0}), steps_of(100, 20.0)),
    "a window": account_of(phases_of({Phase.STEPS: 1.0}, whole=False)),
}


def test_what_the_time_of_runs_goes_to(golden: Callable[[str, str], None]) -> None:
    assert run_account(run_chart(None)) is None
    golden("run_accounts.txt", "\n".join(f"## {name}\n\n{shown(one)}\n" for name, one in ACCOUNTS.items()))


@given(st.dictionaries(st.sampled_from(Phase), st.floats(0.0, 1e9), min_size=1))
def test_rows_are_in_the_order_of_phases_and_sum_to_the_run(times: dict[Phase, float]) -> None:
    account = account_of(phases_of(times))
    assert sum(row.ms for row in account.rows) == pytest.approx(account.total_ms)
    order = [row.phase for row in account.rows]
    assert order == sorted(order, key=list(Phase).index)
    assert all(row.ms > 0 for row in account.rows)


@given(st.lists(st.tuples(st.floats(1.0, 1e5), st.integers(1, 500), st.sampled_from((AT, None))), min_size=1))
def test_the_time_of_long_steps_has_its_lines_or_an_unknown_cause(
    seen: list[tuple[float, int, Location | None]],
) -> None:
    lines = [LongLine(at=at, ms=ms, samples=samples, work=RunWork.OTHER) for ms, samples, at in seen]
    told = sure(long_account(*lines).long_steps)
    assert sum(line.ms for line in told.lines) + told.unknown_ms == pytest.approx(told.beyond_ms)
    assert bool(told.lines) == any(line.sure for line in lines)


# Causes of a slow start and of slow calls, from a recording to the report
FIT = "train.py:20"
RULES = frozenset({"kernel-compilation", "known-fault", "missing-gpu", "sample-weight-scan"})
T4 = MachineSample(1, gpu=(GpuSample(0, "Tesla T4"),))


def run(*, weights_s: float = 0.0, first_s: float = 1.0, steps: int = 500) -> Run:
    """Keras' fit: what precedes the first step, the first step, and many others."""
    made = Run()
    made.python(2.0, "train.py:1", work=RunWork.IMPORTING)
    with made.fit(FIT):
        if weights_s:
            made.python(weights_s, FIT, work=RunWork.WEIGHTS)
        with made.epoch(FIT):
            executes = "tensorflow.python.eager.execute.quick_execute"
            made.trace(first_s, FIT, "one_step_on_iterator", trains=True, runs=executes)
            made.steps(steps, ms=20.0, at=FIT)
    return made


def recorded(made: Run, gpus: GpuAccess | None = None, **settings: Any) -> Recording:
    known: dict[str, Any] = {"devices": ("/device:CPU:0",), "gpus": gpus or GpuAccess()}
    return replace(made.recording(), program=ProgramRecord(run=RunSettings(**(known | settings))))


def on_the_cpu() -> Recording:
    """A T4 that lacks cuDNN."""
    why = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    missing = (MissingLibrary("libcudnn.so.9", why),)
    return replace(recorded(run(), GpuAccess(cuda=True, missing=missing)), samples=(T4,))


def newer_gpu() -> Recording:
    """A GPU that is newer than the build, whose kernels were compiled for 90 s."""
    cache = KernelCache(nbytes=50 << 20, written=400, seconds=95.0)
    targets, of = ("sm_80", "sm_89", "compute_90"), ("12.0",)
    gpus = GpuAccess(registered=1, cuda=True, targets=targets, capabilities=of, cache=cache)
    return recorded(run(first_s=90.0), gpus, devices=("/device:CPU:0", "/device:GPU:0"))


def traced_batches() -> Recording:
    """Keras 3.6, whose train_on_batch traces in each of 60 calls."""
    made = Run(source=StepSource.KERAS_TRAIN_ON_BATCH)
    for number in range(60):
        made.trace(0.1 if number else 1.0, FIT, "one_step_on_iterator", trains=True)
    seen = StepsSeen(source=made.source, seen=60)
    versions = {"keras": "3.6.0", "tensorflow": "2.16.1"}
    opened = recorded(made)
    return replace(opened, manifest=replace(sure(opened.manifest), versions=versions, steps=seen))


def outcomes_of(found: Diagnosis) -> dict[str, Any]:
    return {result.rule.name: result.outcome for result in found.results}


CASES = {
    "missing-gpu": on_the_cpu,
    "kernel-compilation": newer_gpu,
    "sample-weight-scan": lambda: recorded(run(weights_s=40.0)),
    "known-fault": traced_batches,
}


@each(*CASES)
def test_each_cause_is_named_in_the_report_and_no_other(name: str) -> None:
    found = diagnosed(CASES[name]())
    outcomes = outcomes_of(found)
    assert not [one for one in outcomes.values() if isinstance(one, Errored)]
    verdict = as_finding(outcomes[name])
    assert not [other for other in RULES - {name} if isinstance(outcomes[other], Finding)]
    for form in FORMATS:
        assert render(form, found)
    told = json.loads(render("json", found))
    assert verdict.summary in json.dumps(told, ensure_ascii=False)
    assert name in render("md", found)


def test_a_run_without_any_has_none() -> None:
    outcomes = outcomes_of(diagnosed(recorded(run())))
    assert not [name for name in RULES if isinstance(outcomes[name], Finding)]


def test_xlas_first_step_is_named_by_its_time() -> None:
    outcomes = outcomes_of(diagnosed(recorded(run(first_s=40.0), jit_compile=True)))
    assert "XLA compiles" in as_finding(outcomes["kernel-compilation"]).summary


# Every finding of a diagnosis has a place, and every format of code review holds it
SAMPLES = Path(__file__).parents[2] / "sample_traces"
SYNTHETIC = SAMPLES / "synthetic-gpu-a100-fp32"
TRACE = Path("/logs/plugins/profile/run/vm.xplane.pb")
STEPS = StepsSeen(at=("/home/me/job/train.py", 52))
KERNEL = "/usr/lib/python3/dist-packages/ipykernel_launcher.py"


def places(described: Manifest | None) -> tuple[Place, ...]:
    recording = Recording(None, described, (TRACE,), None, (), ())
    finding = Finding(summary="Slow.", evidence=(), remedies=())
    (result,) = placed(recording, [Result(rule=next(iter(all_rules())), outcome=finding)])
    return result.places


def test_the_training_call_precedes_the_script_and_the_trace() -> None:
    described = manifest(command=("python", "job/train.py"), steps=STEPS)
    assert places(described) == (
        Place("job/train.py", 52, PlaceKind.TRAINING_CALL),
        Place("job/train.py", 1, PlaceKind.SCRIPT),
        Place("vm.xplane.pb", 1, PlaceKind.TRACE),
    )


def test_the_traced_loop_precedes_another_that_trains_too() -> None:
    window = TracedWindow(at=("/home/me/job/loop.py", 7))
    first, *_ = places(manifest(window=window, steps=STEPS))
    assert first == Place("job/loop.py", 7, PlaceKind.TRAINING_CALL)


@each(None, manifest(command=("train-model", "--fast")), manifest(command=("python", KERNEL)))
def test_where_no_program_is_known_the_trace_is_the_place(described: Manifest | None) -> None:
    assert [place.kind for place in places(described)] == [PlaceKind.TRACE]


def test_a_trace_without_a_program_loses_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES.parent)
    found = diagnosed(Recording.open(SYNTHETIC))
    names = [entry.result.rule.name for entry in found.entries]
    (run,) = json.loads(render("sarif", found))["runs"]
    gitlab = json.loads(render("gitlab", found))
    assert names
    assert [one["ruleId"] for one in run["results"]] == names
    assert [one["check_name"] for one in gitlab] == names
    assert render("github", found).count(f"file=sample_traces/{SYNTHETIC.name}/plugins/") == len(names)
    assert {one["location"]["path"].partition("/plugins")[0] for one in gitlab} == {
        f"sample_traces/{SYNTHETIC.name}"
    }
