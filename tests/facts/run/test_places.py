"""Lines are shown relative to the folder of the run, or to that of its script."""

from tfdoctor.facts.run.program import Places
from tfdoctor.recording.manifest import Manifest
from tfdoctor.terms.verdict import Location


def shown(path: str, *command: str, cwd: str = "/data/run") -> str:
    return Places(Manifest(command=command, cwd=cwd).folders).shown(path)


def test_a_file_below_the_folder_of_the_run_is_shown_relative_to_it() -> None:
    assert shown("/data/run/models/net.py", "python", "train.py") == "models/net.py"
    assert Places(("/data/run",))(("/data/run/net.py", 3)) == Location("net.py", 3)


def test_a_script_elsewhere_is_shown_relative_to_its_folder() -> None:
    assert shown("/code/job/train.py", "python", "/code/job/train.py") == "train.py"
    assert shown("/data/job/models/net.py", "python", "../job/train.py") == "models/net.py"


def test_a_file_below_both_is_shown_relative_to_the_folder_of_the_run() -> None:
    assert shown("/data/run/net.py", "python", "/data/train.py") == "net.py"


def test_other_files_keep_their_path() -> None:
    assert shown("/data/runs/net.py", "python", "train.py") == "/data/runs/net.py"
    assert shown("/code/net.py", "python", "-m", "job") == "/code/net.py"
    assert shown("/code/net.py", cwd="") == "/code/net.py"
    assert shown("/net.py", "python", "train.py", cwd="/") == "net.py"
