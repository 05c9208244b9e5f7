"""What the command line refuses: one sentence, the exit code 2, and nothing is run or written."""

from tests.cli.kit import *
from tests.report import diagnoses
from tfdoctor.report.formats.json import render


@pytest.fixture(autouse=True)
def folder(alone: Path) -> None:
    """Be where a script, somebody's notes and a stored report are."""
    (alone / "train.py").write_text("open('ran', 'w')\n")
    (alone / "notes.txt").write_text("mine")
    (alone / "kept").mkdir()
    (alone / "kept" / "report.json").write_text(render(diagnoses.full()), "utf-8")


LINES = Names(__file__, "refusals")

test_what_cannot_be_meant_is_one_sentence = LINES.test(dict.fromkeys(LINES, refused))


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
def test_what_cannot_be_reported_on_is_refused_in_one_line_and_left_alone(name: str) -> None:
    path = Path("there", f"{name}.xplane.pb")
    path.parent.mkdir(parents=True)
    if (content := FILES[name]) is not None:
        path.write_bytes(content)
    if name == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        path.chmod(0)
    refused(f"report {'there' if '/' in name else path}")
