"""Recordings of several hosts, from files to the report: synthetic jobs whose slow host is known."""

from scripts.synthetic.run import Run
from tests.diagnose.kit import *
from tests.report.diagnoses import WHOLE

FAST = Run(device="a100", precision="tf32", steps=10)


def examined(folder: Path) -> Diagnosis:
    return diagnosed(Recording.open(folder))


def compared(runs: Mapping[str, Run], folder: Path) -> Hosts:
    job.write(runs, folder)
    return sure(examined(folder).hosts)


@cases(
    ({"input_ms": 8.0}, "input", 8.0),
    ({"between_ms": 6.1}, "between", 6.0),
    ({"gap_us": 60.0}, "host", None),
    ({"copy": "pageable", "network": Network(size=256)}, None, None),
    ({"precision": "fp32", "network": Network(width=256)}, "device", None),
)
def test_the_slow_host_and_its_stage_are_named_within_two_percent(
    slow: dict[str, Any], stage: str | None, ms: float | None, tmp_path: Path
) -> None:
    runs = {"vm0": FAST, "vm1": replace(FAST, **slow), "vm2": FAST}
    truth = {name: gpu.truth(run).step_ms for name, run in runs.items()}
    found = compared(runs, tmp_path)
    assert found.straggler == found.shown == "vm1"
    assert found.lag_ms == pytest.approx(truth["vm1"] - truth["vm0"], rel=0.02)
    if stage:
        assert found.stage == stage
    if ms:
        assert found.lag_ms == pytest.approx(ms, rel=0.02)
    assert len({round(row.median_ms or 0, 3) for row in found.rows}) == 1  # in step all the same


def test_a_slower_device_is_named_with_the_host(tmp_path: Path) -> None:
    other = replace(FAST, device="v100", precision="fp32")
    found = compared({"vm0": other, "vm1": FAST, "vm2": FAST}, tmp_path)
    assert (found.straggler, found.stage) == ("vm0", "device")
    assert [row.device for row in found.rows] == ["Tesla V100-SXM2-16GB", *["NVIDIA A100-SXM4-40GB"] * 2]


def test_equal_hosts_accuse_nobody_and_the_first_is_shown(tmp_path: Path) -> None:
    found = compared({"vm0": FAST, "vm1": FAST}, tmp_path)
    assert (found.straggler, found.shown, found.lag_ms) == ("", "vm0", None)
    assert "No host is slower than the others" in found.slowest
    everywhere = [finding for finding in found.findings if len(finding.hosts) == 2]
    assert everywhere == list(found.findings)  # the same fault is said once


def test_too_few_steps_to_accuse_anyone_still_show_the_host_with_the_fault(tmp_path: Path) -> None:
    few = replace(FAST, steps=5)
    found = compared({"vm0": few, "vm1": replace(few, input_ms=8.0)}, tmp_path)
    assert (found.straggler, found.shown) == ("", "vm1")
    assert "save most" in found.why_shown


def test_the_first_sentence_promises_no_more_than_the_job_gains(tmp_path: Path) -> None:
    job.write({"vm0": FAST, "vm1": replace(FAST, input_ms=8.0)}, tmp_path)
    found = examined(tmp_path)
    alone = max(r.saving.ms_per_step for r in found.results if r.saving)
    gain, both = sure(sure(found.hosts).gain_ms), sure(found.together)
    assert both.ms_per_step <= gain <= alone
    assert both.bound is Bound.AT_MOST


def test_hosts_that_are_several_machines_have_a_skew_by_an_assumption(tmp_path: Path) -> None:
    found = compared({"vm0": FAST, "vm1": FAST}, tmp_path)
    assert (found.skew_start_ms, found.skew_end_ms) == (0.0, 0.0)
    assert "this assumes that the machines' clocks agree" in found.skew


@each(b"", b"\x0a\xff\xff\xff", b"<html>")
def test_a_damaged_host_costs_its_row_and_not_the_report(damage: bytes, tmp_path: Path) -> None:
    paths = job.write({f"vm{n}": FAST for n in range(3)}, tmp_path)
    paths["vm0"].write_bytes(damage)
    found = examined(tmp_path)
    assert sure(found.hosts).shown == "vm1"
    first, *others = sure(found.hosts).rows
    assert "vm0.xplane.pb is" in first.missing
    assert [row.missing for row in others] == ["", ""]
    assert any(text.startswith("vm0: ") for text in found.unrecorded)
    for name in WHOLE:
        assert "vm0" in render(name, found)


def test_when_all_are_damaged_the_first_fault_is_said(tmp_path: Path) -> None:
    for path in job.write({"vm0": FAST, "vm1": FAST}, tmp_path).values():
        path.write_bytes(b"\x0a\xff\xff\xff")
    with pytest.raises(InputError, match="vm0"):
        examined(tmp_path)


def test_a_host_without_steps_is_said_to_have_none(tmp_path: Path) -> None:
    """A parameter server, or an evaluator."""
    paths = job.write({"chief": FAST, "worker": replace(FAST, input_ms=8.0)}, tmp_path)
    paths["chief"].with_name("ps.xplane.pb").write_bytes(b"\x0a\x0d\x08\x01\x12\x09/host:CPU")
    found = sure(examined(tmp_path).hosts)
    assert found.straggler == "worker"
    (server,) = (row for row in found.rows if row.name == "ps")
    assert server.steps == 0
    assert "no training step" in server.missing


def test_one_host_with_steps_is_shown_and_nothing_is_said_of_the_others(tmp_path: Path) -> None:
    paths = job.write({"worker": FAST}, tmp_path)
    paths["worker"].with_name("a-ps.xplane.pb").write_bytes(b"\x0a\x0d\x08\x01\x12\x09/host:CPU")
    found = sure(examined(tmp_path).hosts)
    assert (found.shown, found.straggler) == ("worker", "")
    assert "unknown: one host has comparable steps" in found.slowest


def test_workers_are_read_with_their_own_manifests(tmp_path: Path) -> None:
    paths = job.write({"worker-0": FAST, "worker-1": replace(FAST, input_ms=8.0)}, tmp_path)
    for rank, name in enumerate(paths):
        own = tmp_path / "workers" / name
        own.mkdir(parents=True)
        said = manifest(command=("train.py", name), worker=WorkerRank(name, rank, place=rank))
        (own / "tfdoctor.json").write_text(json.dumps(asdict(said)))
    found = examined(tmp_path)
    assert sure(found.hosts).straggler == "worker-1"
    assert found.subject.command == ("train.py", "worker-1")
    first = tmp_path / "workers" / "worker-0"
    assert examined(first).hosts is None
    (first / "tfdoctor.json").write_text("{")  # the others stay
    assert examined(tmp_path).hosts


def test_a_fault_of_any_host_counts_for_the_exit_code(tmp_path: Path) -> None:
    """The slow host is shown, and the fault is that of another."""
    slow = replace(FAST, network=Network(width=512), precision="fp32")
    starving = replace(FAST, input_ms=gpu.truth(slow).step_ms / 3)
    job.write({"vm0": starving, "vm1": slow}, tmp_path)
    found = examined(tmp_path)
    assert sure(found.hosts).shown == "vm1"
    assert "input-bound" not in {result.rule.name for result in found.results if result.severity}
    (other,) = (each for each in sure(found.hosts).findings if each.rule == "input-bound")
    assert other.hosts == ("vm0",)
    assert other.severity
    level = FailOn(other.severity.name.lower())
    alone = replace(found, hosts=replace(sure(found.hosts), findings=(other,)), results=())
    assert exit_code(alone, level) == 3
    assert exit_code(replace(found, hosts=None, results=()), level) == 0


def test_reports_of_64_hosts_stay_readable(tmp_path: Path) -> None:
    small = replace(FAST, steps=14, network=Network(batch=8, size=16, batch_norm="none"))
    runs = {f"host{n:02}": small for n in range(64)}
    runs["host41"] = replace(small, input_ms=5.0)
    job.write(runs, tmp_path)
    found = examined(tmp_path)
    assert sure(found.hosts).straggler == "host41"
    texts = {name: render(name, found) for name in WHOLE}
    alone = replace(found, hosts=None)
    for name in WHOLE:
        assert len(texts[name]) - len(render(name, alone)) < 120_000, name
    assert len(texts["md"].encode()) <= 64_000
    screen = terminal.render(found, width=80, color=False)
    assert screen.count("\n") < 60
    assert "host41" in screen
    assert "… 56 more in the report" in screen


def test_the_command_reports_and_its_single_hosts_say_nothing_of_others(tmp_path: Path) -> None:
    paths = job.write({"vm0": FAST, "vm1": replace(FAST, input_ms=8.0)}, tmp_path / "log")
    run = ["report", str(tmp_path / "log"), "--out", str(tmp_path), "--format", "json,md"]
    done = CliRunner().invoke(cli.app, run)
    assert done.exit_code == 0
    assert "The other hosts wait for vm1" in done.output
    single = CliRunner().invoke(cli.app, ["report", str(paths["vm0"]), "--out", str(tmp_path)])
    assert single.exit_code == 0
    assert "Hosts" not in single.output
    assert "hosts" not in json.loads((tmp_path / "report.json").read_text())
