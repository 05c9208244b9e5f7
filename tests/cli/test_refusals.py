"""What the command line refuses: one sentence, the exit code 2, and nothing is run or written."""

import gzip
import shlex

from tests.cli.kit import *
from tests.report import diagnoses
from tfdoctor.report.formats.json import render

LINK = "is not a web address: write https://"
WHOLE = "is not a whole number of at least 1 (see `tfdoctor profile --help`)."
EMPTY = "the path is empty: name one, or check the variable it is from (see `tfdoctor report --help`)."

REFUSED = {
    # What is no command line
    "": "Usage: ",
    "--nope": "no such option: --nope (see `tfdoctor --help`).",
    "nope": "no such command 'nope' (see `tfdoctor --help`).",
    "diagnose trace": "no such command 'diagnose'",
    "report": "missing argument 'PATH' (see `tfdoctor report --help`).",
    "report a b": "got unexpected extra argument(s) (b) (see `tfdoctor report --help`).",
    "report ''": f"invalid value for 'PATH': {EMPTY}",
    "report trace --fail-on always": "'always' is not one of 'note', 'warning', 'critical', 'never' (see",
    "profile --zzzz x": "no such option: --zzzz (see `tfdoctor profile --help`).",
    "profile --out": "option '--out' requires an argument (see `tfdoctor profile --help`).",
    "profile --steps abc train.py": f"invalid value for '--steps': 'abc' {WHOLE}",
    "profile --steps 0 train.py": f"invalid value for '--steps': '0' {WHOLE}",
    "profile --warmup -1 train.py": "invalid value for '--warmup': '-1' is not a whole number of at least 0",
    "profile --out /proc/nope train.py": "/proc/nope cannot be written (a folder cannot be created there): choose",
    "profile": "invalid value for SCRIPT: name the training script (see `tfdoctor profile --help`).",
    "profile --": "invalid value for SCRIPT: name the training script (see `tfdoctor profile --help`).",
    "profile -m": "option '-m' requires an argument (see `tfdoctor profile --help`).",
    "profile --for 0 train.py": "invalid value for '--for': '0' is not a time: write 2s, 500ms or 1m",
    "profile --for '2 parsecs' train.py": "invalid value for '--for': '2 parsecs' is not a time",
    "profile --no-trace --steps 20 train.py": "--no-trace traces no steps: leave --steps out",
    "profile --for 2s --no-trace train.py": "--no-trace traces no steps: leave --for out",
    "profile --no-trace --stop-after train.py": "--no-trace traces no steps: leave --stop-after out",
    "profile --for-epochs 0 train.py": f"invalid value for '--for-epochs': '0' {WHOLE}",
    "profile kept/report.json": "is a report, which holds no program",
    # Formats, links and folders
    "report trace --format llm,github --out new": "llm and github are printed",
    "report trace --format html,pdf": "'pdf' is not one of github, gitlab, html, json, llm, md, sarif",
    "report {slow} --open --format json": "--open opens the HTML report: add html",
    "report {slow} --link report.html": LINK,
    "report {slow} --link 'javascript:alert(1)'": LINK,
    "report {slow} --link https:": LINK,
    "report {slow} --link ftp://x.test/a": LINK,
    "report {slow} --fail-on-roofline 0.4": "may mean 0.4% or 40%",
    # Addresses
    "report foo://a/b": "Protocol not known: foo",
    "report az://a/b": "pip install 'tfdoctor[azure]'",
    "report gs://": "gs:// names no bucket: check the address.",
    "report s3:///a": "s3:///a names no bucket: check the address.",
    # Stored reports
    "report kept/report.json --select=retracing": "--select needs the recording",
    "report kept/report.json --scrub": "--scrub needs the recording",
    "report kept/report.json --usd-per-hour=3": "--usd-per-hour needs the recording",
    "report kept/report.json --for-epochs=9": "--for-epochs needs the recording",
    "report kept/report.json --usd-per-kwh=0": "--usd-per-kwh needs the recording",
    "report kept/report.json --usd-per-kwh=-1": "is no amount for a kWh",
    "report kept/report.json --usd-per-kwh=nan": "is no amount for a kWh",
    "report kept/report.json --usd-per-kwh=10001": "is no amount for a kWh",
    "report kept/report.json --format md --patch ''": "--patch needs a file name, or - for standard output.",
    # Comparisons
    "diff {slow} {slow}": "is given twice",
    "diff {slow} {fixed} --before {slow}/ --anyway": "is given twice",
    "diff {slow} {slow} --format pdf": "'pdf' is not one of html, json, md",
    "diff {slow} {slow} --max-regression much": "'much' is not a percentage above 0% and below 100%: write 10%",
    "diff {slow} {slow} --max-regression 0.1": "'0.1' may mean 0.1% or 10%",
    "diff {slow} {slow} --shares --max-regression 5%": "--max-regression needs times: leave --shares out",
    "diff {slow} {slow} --shares --anyway": "exclude each other",
    "diff {slow} {slow} --after ''": "the path is empty",
    "diff {slow} /nowhere": "There is nothing at /nowhere: check the path.",
    "diff {slow} {slow}/../README.md": "README.md is no XSpace: expected a *.xplane.pb that a profiler wrote.",
    # Trials
    "try": "invalid value for SCRIPT: name the training script (see `tfdoctor try --help`).",
    "try none.py": "Script none.py not found: check the path.",
    "try kept/report.json": "is a report, which holds no program",
    "try --fail-on-promise ten {slow}": "is not a percentage",
    "try --fail-on-promise 0% {slow}": "is not a percentage",
    "try --fail-on-promise 120% {slow}": "is not a percentage",
    "try --keep notes.txt {slow}": "notes.txt exists and is not a patch: choose another file for the patch.",
    "try . --epochs-of-mine 3": "no such option: --epochs-of-mine (see `tfdoctor try --help`).",
    "try . --minutes 3 epochs 4": "remove `epochs 4`",
    "try . -m package": "remove `-m package`",
    "try -m 'not a module' . --yes": "not a module is not a module name",
}
"""Command lines, and what their sentences contain."""


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_meant_is_one_sentence(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("open('ran', 'w')\n")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "report.json").write_text(render(diagnoses.full()), "utf-8")
    before = names(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = tfdoctor(*shlex.split(line.format(slow=SLOW, fixed=FIXED)))
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED[line] in done.stderr
    assert done.stderr.startswith("tfdoctor: ") is bool(line)
    assert done.stderr.count("\n") == 1 or not line
    assert names(tmp_path) == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


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


@pytest.mark.parametrize("name", FILES)
def test_what_cannot_be_reported_on_is_refused_in_one_line_and_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, there, here = FILES[name], tmp_path / "there", tmp_path / "here"
    path = there / f"{name}.xplane.pb"
    path.parent.mkdir(parents=True)
    here.mkdir()
    if content is not None:
        path.write_bytes(content)
    if name == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        path.chmod(0)
    before = names(tmp_path)
    monkeypatch.chdir(here)
    done = tfdoctor("report", str(there if "/" in name else path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tfdoctor: ")
    assert done.stderr.count("\n") == 1
    assert names(tmp_path) == before
