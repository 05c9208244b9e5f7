"""The figures that the page on MLflow and Weights & Biases reads are in a report, under names that both take."""

from scripts.quoted import diagnosed
from tests.kit import *
from tfdoctor.report.formats import render

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "log-to-mlflow-or-wandb.md"

NAME = re.compile(r"[\w\-. :/]+")
"""What MLflow allows in the name of a metric."""


@each("cpu-outside-steps", "cpu-input-bound")  # of a traced window
def test_the_page_reads_figures_of_any_report(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "train").mkdir(parents=True)
    (tmp_path / "runs" / "train" / "report.json").write_text(render("json", diagnosed(sample)))
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block
    made: dict[str, dict[str, float]] = {}
    exec(block[1], made)  # the page's own code
    assert {"tfdoctor/step_ms", "tfdoctor/run_s", "tfdoctor/findings"} <= made["figures"].keys()
    assert [name for name in made["figures"] if not NAME.fullmatch(name)] == []
    assert all(isinstance(value, float | int) for value in made["figures"].values())
