"""The wheel and the source archive: what is in them, and whether the wheel works away from the checkout."""

import email
import tarfile
import venv
import zipfile

import tfdoctor
from tests.command import tfdoctor as here
from tests.kit import *

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "sample_traces" / "synthetic-tpu-v5e-padded"
NAME = f"tfdoctor-{tfdoctor.__version__}"
SHELLS = {
    "bash": {"COMP_WORDS": "tfdoctor prof", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "tfdoctor prof"},
    "fish": {"_TYPER_COMPLETE_ARGS": "tfdoctor prof", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}

MOST_BYTES = 6_200_000
"""Of the source archive: its largest parts are sample traces and pictures; golden texts of tests are 0.1 MB."""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed, away from the checkout's own packages; return its output."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = ran_command(*command, cwd=cwd, env=kept | variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive of the checkout, and the wheel that was built from that archive."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel, which sees the packages that run this test."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel(built)) as archive:
        archive.testzip()
    run(
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps",
        "--python", folder / "bin" / "python", wheel(built), cwd=folder,
    )  # fmt: skip
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    return folder / "bin"


def wheel(folder: Path) -> Path:
    return folder / f"{NAME}-py3-none-any.whl"


def test_the_wheel_contains_the_package_and_nothing_else(built: Path) -> None:
    tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "src", cwd=ROOT)
    sources = {line.removeprefix("src/") for line in tracked.splitlines() if (ROOT / line).exists()}
    files = set(zipfile.ZipFile(wheel(built)).namelist())
    about = {name for name in files if name.startswith(f"{NAME}.dist-info/")}
    assert files - about == sources
    assert {"tfdoctor/py.typed", "tfdoctor/capture/site/sitecustomize.py"} <= files
    assert f"{NAME}.dist-info/licenses/LICENSE" in about


def test_the_source_archive_contains_what_builds_and_tests_it(built: Path) -> None:
    archive = built / f"{NAME}.tar.gz"
    with tarfile.open(archive) as file:
        names = {name.removeprefix(f"{NAME}/") for name in file.getnames()}
    tracked = set(run("git", "ls-files", cwd=ROOT).splitlines())
    new = set(run("git", "ls-files", "--others", "--exclude-standard", cwd=ROOT).splitlines())
    assert names - tracked - new == {"PKG-INFO"}
    assert {name for name in tracked - names if (ROOT / name).exists()} == set()
    assert archive.stat().st_size < MOST_BYTES


def test_the_metadata_is_complete_and_the_readme_renders(built: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)
    run(sys.executable, "-m", "check_wheel_contents", wheel(built), cwd=built)
    with zipfile.ZipFile(wheel(built)) as archive:
        text = archive.read(f"{NAME}.dist-info/METADATA").decode()
    metadata = email.message_from_string(text)
    expected = {"Version": tfdoctor.__version__, "License-Expression": "Apache-2.0"}
    expected |= {"Requires-Python": "<3.14,>=3.11", "Description-Content-Type": "text/markdown"}
    assert {name: metadata[name] for name in expected} == expected


SHOWN = """
import sys
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
core = ProjectMetadata(sys.argv[1], PluginManager()).core
print(core.urls, core.readme)
"""


def test_links_of_a_published_readme_lead_to_the_release(tmp_path: Path) -> None:
    """The index shows the README away from the files that it links to."""
    shown = run(sys.executable, "-c", SHOWN, ROOT, cwd=tmp_path, TFDOCTOR_REPOSITORY="https://example.org/me/it/")
    release = f"https://example.org/me/it/{{}}/v{tfdoctor.__version__}"
    assert f"'Changelog': '{release.format('blob')}/CHANGELOG.md'" in shown
    assert f"]({release.format('raw')}/docs/images/report.png)" in shown
    assert f"]({release.format('blob')}/docs/tutorial.md)" in shown
    targets = re.findall(r"\]\(([^)]+)\)", shown)
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_installed_wheel_reports_as_the_checkout_does(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = []
    for command in ((installed / "tfdoctor",), (installed / "python", "-m", "tfdoctor")):
        assert run(*command, "--version", cwd=tmp_path) == f"tfdoctor {tfdoctor.__version__}\n"
    for name in ("wheel", "checkout"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        if name == "wheel":
            run(*command, "report", TRACE, "--out", "reports", cwd=folder)
        else:
            assert here("report", str(TRACE), "--out", "reports").returncode == 0
        files = sorted((folder / "reports").iterdir())
        reports.append({file.name: file.read_text(encoding="utf-8") for file in files})
    wheel_reports, checkout_reports = reports
    assert wheel_reports
    assert wheel_reports == checkout_reports


def test_the_installed_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    shown = run(installed / "python", "-c", "import tfdoctor; print(tfdoctor.__file__)", cwd=tmp_path)
    assert Path(shown.strip()).is_relative_to(installed.parent)


@each(*SHELLS)
def test_shells_complete_the_commands(shell: str, installed: Path, tmp_path: Path) -> None:
    asked = {"_TFDOCTOR_COMPLETE": f"complete_{shell}", **SHELLS[shell]}
    assert "profile" in run(installed / "tfdoctor", cwd=tmp_path, **asked)


TRAINING = """
import tensorflow as tf
weights = tf.Variable([0.5])

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = weights**2
    weights.assign_sub(0.1 * tape.gradient(loss, weights))

for _ in range(400):
    step()
"""


@pytest.mark.tensorflow
def test_the_installed_wheel_records(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = ("profile", "--python", installed / "python", "--out", "out", "--format", "json", "train.py")
    run(installed / "tfdoctor", *words, cwd=tmp_path, CUDA_VISIBLE_DEVICES="")
    steps = json.loads((tmp_path / "out" / "report.json").read_text())["steps"]
    assert (steps["source"], steps["count"]) == ("repeated-call", 20)
