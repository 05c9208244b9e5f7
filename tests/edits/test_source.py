"""A file is edited only where it is unchanged since the recording; its path in the repository is found."""

from tests.compare.made import finding
from tests.edits.kit import Declined, Location, Manifest, Path, ProgramRecord, Recording, pytest, recorded, replace
from tests.kit import *
from tests.report.diagnoses import full
from tfdoctor.edits import line_hashes, repository_paths
from tfdoctor.edits.source import SourceFile, Sources, existing, folders_of

TEXT = b"import tensorflow as tf\n"


def placed(folder: Path, *names: str) -> Recording:
    """Return a recording of files in a folder, which are written there."""
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(TEXT)
    return recorded(folder, names)


def test_an_unchanged_file_is_read_also_in_another_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = placed(tmp_path, "train.py")
    assert Sources(recording)["train.py"].text == TEXT.decode()
    (tmp_path / "clone").mkdir()
    (tmp_path / "train.py").rename(tmp_path / "clone" / "train.py")
    monkeypatch.chdir(tmp_path / "clone")
    assert Sources(recording)["train.py"].data == TEXT


def test_a_script_outside_the_folder_of_the_run_is_read_unless_another_is_shown_alike(tmp_path: Path) -> None:
    elsewhere = Manifest(command=("python", str(tmp_path / "job" / "train.py")), cwd=str(tmp_path / "run"))
    sources = Sources(replace(placed(tmp_path, "job/train.py"), manifest=elsewhere))
    assert (sources["train.py"].data, sources.trains()) == (TEXT, Location("train.py", 0))
    both = replace(placed(tmp_path, "job/train.py", "run/train.py"), manifest=elsewhere)
    with pytest.raises(Declined, match=r"more than one train\.py"):
        Sources(both)["train.py"]


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@cases(
    (["train.py"], lambda file: file.write_bytes(TEXT + b"#"), r"train\.py has changed since the recording"),
    (["train.py"], Path.unlink, r"train\.py was not found"),
    ([], Path.touch, r"no hash of train\.py"),
    (["train.py"], pipe, "no file of a program"),
)
def test_a_file_that_is_not_the_recorded_one_is_not_edited(
    files: list[str], change: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    sources = Sources(recorded(tmp_path, files))
    change(tmp_path / "train.py")
    with pytest.raises(Declined, match=why):
        sources["train.py"]


@cases(
    ("é = 1\n".encode(), "utf-8"),
    (b"\xef\xbb\xbfx = 1\r\n", "utf-8-sig"),
    ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "iso-8859-1"),
    ("# coding: cp1252\nx = '€'\n".encode("cp1252"), "cp1252"),
)
def test_a_file_is_read_in_its_encoding_and_written_in_it(data: bytes, encoding: str) -> None:
    source = SourceFile.read("train.py", data)
    assert (source.encoding, source.encoded(source.text)) == (encoding, data)


@each("a\0b", "x" * 5000, "\ud800", "/dev/null/x")
def test_a_folder_that_cannot_be_is_not_found(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is still found in another one."""
    recording = replace(placed(tmp_path, "train.py"), manifest=Manifest(cwd=folder))
    monkeypatch.chdir(tmp_path)
    assert (existing(Path(folder)), folders_of([folder])) == (None, [tmp_path.resolve()])
    assert Sources(recording)[str(tmp_path / "train.py")].data == TEXT


SAMPLE = Recording.open(Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound")


def test_a_path_is_that_from_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the recorded folder are elsewhere: the current folder is another clone. One file is missing."""
    (tmp_path / ".git").mkdir()
    placed(tmp_path, "models/train.py")
    monkeypatch.chdir(tmp_path / "models")
    assert repository_paths(SAMPLE, full().results) == {"train.py": "models/train.py"}


def test_the_lines_that_findings_name_have_the_hashes_that_were_recorded() -> None:
    program = ProgramRecord(lines={"train.py": "aaaaaaaabbbbbbbbcccccccc"})
    found = finding("slow", "train.py", 3.0, line=2), finding("other", "helpers.py", 3.0, line=2)
    recording = replace(SAMPLE, program=program)

    assert line_hashes(recording, found) == {"train.py:2": "bbbbbbbb"}
    assert [program.line("train.py", number) for number in (0, 3, 4)] == ["", "cccccccc", ""]
