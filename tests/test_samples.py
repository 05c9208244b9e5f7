"""The recorded samples: small, scrubbed, and saying what the README says they say."""

from scripts.quoted import diagnosed
from tests.kit import *
from tfdoctor.recording import PROGRAM, Recording
from tfdoctor.terms.verdict import Errored, Finding

SAMPLES = Path(__file__).parent.parent / "sample_traces"
FINDINGS = {
    "cpu-input-bound": {"input-bound", "python-input"},
    "cpu-input-bound-fixed": set(),
    "cpu-float32-convnet": {"float32-matmul", "unaligned-dimension", "unfused-batch-norm"},
    "cpu-float32-convnet-fixed": set(),
    "gpu-jax-float32-convnet": {"float32-matmul"},
    "gpu-jax-float32-convnet-fixed": set(),
}
BY_TFDOCTOR = [name for name in FINDINGS if name.startswith("cpu-")]

MEGABYTE = 1_000_000


@pytest.fixture(scope="module", params=FINDINGS)
def sample(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_sample_has_the_faults_that_were_planted_and_no_other(sample: str) -> None:
    results = diagnosed(sample).results
    worth = {
        result.rule.name
        for result in results
        if isinstance(result.outcome, Finding) and result.saving and not result.saving.after
    }
    assert worth == FINDINGS[sample]
    assert not [result for result in results if isinstance(result.outcome, Errored)]


def test_what_was_foretold_for_the_network_came_true() -> None:
    slow, fixed = diagnosed("cpu-float32-convnet"), diagnosed("cpu-float32-convnet-fixed")
    assert slow.steps.median_ms is not None
    assert fixed.steps.median_ms is not None
    assert slow.together is not None
    foretold = slow.steps.median_ms - slow.together.ms_per_step
    assert fixed.steps.median_ms == pytest.approx(foretold, rel=0.25)


def test_a_sample_is_small(sample: str) -> None:
    files = [path for path in (SAMPLES / sample).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MEGABYTE


@each(*BY_TFDOCTOR)
def test_a_sample_tells_nothing_of_the_machine_it_was_made_on(sample: str) -> None:
    recording = Recording.open(SAMPLES / sample)
    assert recording.manifest is not None
    program = gzip.decompress((SAMPLES / sample / PROGRAM).read_bytes())
    assert (recording.manifest.host.name, recording.manifest.cwd) == ("host", "/home/user/train")
    assert not recording.manifest.environment
    assert set(re.findall(rb'"(/[^"]*)"', program)) == {
        b"/home/user/train/" + script for script in re.findall(rb"/(\w+\.py)", program)
    } | set(re.findall(rb'"(/device[^"]*)"', program))


def test_a_trace_of_another_profiler_tells_nothing_of_its_machine_either(sample: str) -> None:
    data = b"".join(path.read_bytes() for path in (SAMPLES / sample).rglob("*.xplane.pb"))
    assert not re.findall(rb"/(?:work|root|tmp|usr|opt)/[\w./-]+", data)
    assert set(re.findall(rb"/home/[\w.-]+/[\w.-]+", data)) <= {b"/home/user/train"}
    assert b"GPU-" not in b"".join(path.read_bytes() for path in (SAMPLES / sample).glob("*.jsonl"))


def test_what_bfloat16_was_foretold_to_save_on_a_gpu_is_a_ceiling() -> None:
    slow, fixed = diagnosed("gpu-jax-float32-convnet"), diagnosed("gpu-jax-float32-convnet-fixed")
    assert slow.steps.median_ms is not None
    assert fixed.steps.median_ms is not None
    assert slow.together is not None
    saved = slow.steps.median_ms - fixed.steps.median_ms
    assert saved <= slow.together.ms_per_step <= 1.15 * saved


def test_every_sample_is_described() -> None:
    text = (SAMPLES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in SAMPLES.iterdir() if path.is_dir()}
    assert folders == set(re.findall(r"^## (\S+)$", text, re.MULTILINE))
