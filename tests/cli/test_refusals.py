"""What the command line refuses: one sentence, the exit code 2, and nothing is run or written."""

from tests.cli.kit import *
from tests.report import diagnoses
from tfdoctor.report.formats.json import render

TEXTS = {
    "train.py": "open('ran', 'w')\n",
    "notes.txt": "mine",
    "kept/report.json": render(diagnoses.full()),
    # Baselines, and a budget
    "page": "<html>",
    "broken": "{,",
    "future": '{"schema": 9, "program": "", "findings": []}',
    "other": '{"schema": 1, "tfdoctor": "0", "program": "other.py", "findings": []}',
    "empty.toml": "[budget]",
}

RECORDINGS: dict[str, dict[str, Any]] = {
    "steps": {"missing": [{"what": "trace", "why": "the script did not import TensorFlow"}], "steps": {"seen": 0}},
    "worker": {"worker": {"name": "worker-0", "rank": 0, "size": 2}},
    "elsewhere": {},
    "good": {},
}
"""What recordings that can be run again, but not tried, have in their manifest."""


@pytest.fixture
def files(alone: Path) -> None:
    """Be where a script, somebody's notes, a stored report, baselines and recordings are."""
    (alone / "kept").mkdir()
    for name, text in TEXTS.items():
        (alone / name).write_text(text, "utf-8")
    for name, changes in RECORDINGS.items():
        (alone / name).mkdir()
        made(alone / name, **changes)
    shutil.copy(CONVNET / "program.json.gz", alone / "elsewhere" / "recording")
    for name in (CONVNET.name, "synthetic-gpu-a100-fp32"):
        shutil.copytree(SAMPLES / name, alone / name)


LINES = Names(__file__, "refusals")


@pytest.mark.usefixtures("files")
def test_what_cannot_be_meant_is_one_sentence(golden: Callable[[str, str], None]) -> None:
    LINES.test(dict.fromkeys(LINES, refused))(golden)


def test_no_command_is_the_usage() -> None:
    done = tfdoctor()
    assert (done.returncode, done.stdout, done.stderr[:7]) == (2, "", "Usage: ")


TRUNCATED = b"\x0a\x80\x10\x12\x05/host\xff\x00\x81" + bytes(100)
"""The head of an XSpace: a plane of 2048 bytes, cut off."""

FILES = {
    "missing": None,
    "empty": b"",
    "truncated": TRUNCATED,
    "compressed": gzip.compress(b"a trace", mtime=0),
    "text": b"\nStep 1: loss 0.3\nStep 2: loss 0.2\n",
    "noise": bytes(range(255, 0, -1)),
    "unreadable": TRUNCATED,
    "plugins/profile/run": None,
    "plugins/profile/run/host": TRUNCATED,
}


@each(*FILES)
def test_what_cannot_be_reported_on_is_refused_in_one_line_and_left_alone(name: str, alone: Path) -> None:
    path = alone / "there" / f"{name}.xplane.pb"
    path.parent.mkdir(parents=True)
    if (content := FILES[name]) is not None:
        path.write_bytes(content)
    if name == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        path.chmod(0)
    refused(f"report {'there' if '/' in name else path}")
