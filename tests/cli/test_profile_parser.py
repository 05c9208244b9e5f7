"""`tfdoctor profile`: what is ours on its command line, and what is the run's."""

import typer

from tests.cli.kit import *
from tfdoctor.cli.values import parse_seconds

SHOW = "import sys\nprint(sys.argv[1:], __name__, sys.flags.optimize)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "mod.py").write_text(SHOW)
    (tmp_path / "train.py").write_text(SHOW)
    (tmp_path / "run.sh").write_text(f'exec {sys.executable} train.py "$@"\n')
    return tmp_path


def profile(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return cli("profile", "--out", "out", "--no-report", *arguments, folder=folder)


@cases(
    ("train.py --out x -q -- -m", "['--out', 'x', '-q', '--', '-m'] __main__ 0"),
    ("--sample-every 0 train.py -m x", "['-m', 'x'] __main__ 0"),
    ("-m pkg.mod a b", "['a', 'b'] __main__ 0"),
    ("-m pkg.mod", "[] __main__ 0"),
    ("-mpkg.mod --steps 2", "['--steps', '2'] __main__ 0"),
    ("--steps=5 -q -m pkg.mod -- -q", "['--', '-q'] __main__ 0"),
    ("-- bash run.sh a --steps", "['a', '--steps'] __main__ 0"),
    (f"-q -- {sys.executable} -O train.py -- x", "['--', 'x'] __main__ 1"),
)
def test_what_follows_belongs_to_the_run(arguments: str, given: str, folder: Path) -> None:
    done = profile(folder, *arguments.split())
    assert (done.returncode, done.stdout) == (0, f"{given}\n")
    assert (folder / "out" / "tfdoctor.json").is_file()


def test_quiet_says_what_went_wrong_and_nothing_of_a_run_that_trains_nothing(folder: Path) -> None:
    assert profile(folder, "-q", "train.py").stderr == ""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    python.chmod(0o755)
    done = cli("profile", "--out", "other", "--no-report", "-q", "--python", str(python), "train.py", folder=folder)
    assert done.stderr.startswith("tfdoctor: no steps traced (the recorder did not start")


def seconds(text: str) -> object:
    try:
        return parse_seconds(text)
    except typer.BadParameter as why:
        return why


test_times_are_read_as_people_write_them_and_others_refused = Names(__file__, "times").test({"seconds": seconds})
