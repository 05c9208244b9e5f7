"""A script that looks, or that replaces what it finds, meets nothing of ours; the account of its run stays true."""

from tests.capture.kit import *
from tests.capture.running import fake_tensorflow, profiled

SCRIPTS = text_parts(Path(__file__).with_name("same_run.txt"))


@each(*SCRIPTS.values(), ids=[*SCRIPTS])
def test_a_script_finds_nothing_of_ours(script: str, tmp_path: Path) -> None:
    fake_tensorflow(tmp_path)
    (tmp_path / "train.py").write_text(script)
    run = profiled(tmp_path / "train.py", tmp_path / "out", sample_every_ms=0)
    assert (run.code, run.stdout) == (0, "[]\n")
    assert run.stderr.count("\n") == 1  # tfdoctor's own
    (log,) = tmp_path.glob("out/**/run.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert 0 < max(line["end"] for line in lines if line["kind"] in ("bucket", "end")) < 60
    assert lines[-1]["kind"] == "end"
