"""The samples are what their script makes, and their README is true."""

from scripts import synthesize
from scripts.synthetic import samples
from scripts.synthetic.run import Run
from scripts.synthetic.samples import SAMPLES, Sample
from tests.kit import *
from tfdoctor.trace import xplane

FOLDER = Path(__file__).parents[2] / "sample_traces"
README = FOLDER / "README.md"


@each(*SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_what_its_script_makes(sample: Sample, tmp_path: Path) -> None:
    samples.write(sample.run, tmp_path)
    for name in (samples.TRACE, Path(samples.TRUTH)):
        assert (tmp_path / name).read_bytes() == (FOLDER / sample.name / name).read_bytes()


@each(*SAMPLES, ids=lambda sample: sample.name)
def test_the_readme_states_a_samples_truth(sample: Sample) -> None:
    assert samples.describe(sample) in README.read_text(encoding="utf-8")


def test_samples_are_small() -> None:
    sizes = {path: path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()}
    assert sizes
    assert max(sizes.values()) < 1_000_000


def test_describing_again_changes_nothing_else(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Samples\n\nAbove.\n\n<!-- recorded -->\nBelow.\n")
    synthesize.write_samples(tmp_path)
    once = readme.read_text()
    synthesize.write_samples(tmp_path)
    assert readme.read_text() == once
    assert once.startswith("# Samples\n\nAbove.\n")
    assert all(f"## {sample.name}\n" in once for sample in SAMPLES)


def test_a_run_is_written_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--precision fp16 --steps 3 --depthwise --batch-norm unfused --overlap"
    synthesize.main(["run", str(tmp_path), "t4", *options.split()])
    assert "steps of" in capsys.readouterr().out
    trace = xplane.read(tmp_path / samples.TRACE)
    assert [plane.name for plane in trace.devices("GPU")] == ["/device:GPU:0"]
    types = {kind.name for kind in trace.devices("GPU")[0].types}
    assert any("DepthwiseConv2dBackpropFilterGPUKernelNHWC" in name for name in types)


@cases(("t4", "tf32"), ("v5e", "fp16"))
def test_an_unknown_precision_is_refused(
    device: str, precision: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=precision):
        samples.build(Run(device=device, precision=precision))
    with pytest.raises(SystemExit):
        synthesize.main(["run", str(tmp_path), device, "--precision", precision])
    assert precision in capsys.readouterr().err
