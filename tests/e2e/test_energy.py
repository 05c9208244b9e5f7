"""A run with a counter of energy through the whole tool: a stand-in for NVIDIA's library counts joules."""

from tests.e2e.kit import *

pytestmark = pytest.mark.tensorflow

STUB = ROOT / "tests" / "capture" / "nvml_stub.c"

PRICES = ("--usd-per-kwh", "0.3", "--gco2-per-kwh", "400")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with its reports; the board idles at 90 W, then takes 412.5 W."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    place = tmp_path_factory.mktemp("counted")
    library = str(place / "libnvidia-ml.so.1")
    build = [compiler, "-shared", "-fPIC", "-O1", "-DIDLE_S=2.5", "-DALONE", "-DPERSISTENCE=0", "-DOPEN_US=600000"]
    subprocess.run([*build, "-o", library, str(STUB)], check=True)
    words = ("--quiet", "--format", "html,json,md", *PRICES, str(SCRIPTS / "slow_reads.py"))
    seen = {"LD_LIBRARY_PATH": str(place), "CUDA_VISIBLE_DEVICES": "GPU-00000000"}
    done = cli("profile", "--out", "run", *words, folder=place, **seen)
    assert done.returncode == 0, done.stderr
    return place / "run"


def report(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return read


def test_a_step_has_the_energy_of_the_board(folder: Path) -> None:
    energy = report(folder)["energy"]
    (row,) = energy["rows"]
    assert (row["source"], row["device_count"]) == ("GPU", 1)
    assert 90 < row["power_w"] <= 1.02 * 412.5
    step_s = report(folder)["steps"]["step_ms"] / 1000
    assert row["per_step"]["j"] == pytest.approx(row["power_w"] * step_s, rel=0.01)
    assert row["run"]["usd"] == pytest.approx(0.3 * row["run"]["j"] / 3.6e6)
    assert row["run"]["gco2"] == pytest.approx(400 * row["run"]["j"] / 3.6e6)
    assert energy["measured_s"] > 3


def test_energy_and_money_are_on_the_page_and_in_the_comment(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    shown = page[page.index('<h2 id="energy">') :].partition("</section>")[0].replace("<wbr>", "")
    assert "one GPU board (NVML)" in shown
    assert "$0.00" in shown
    assert "g CO2" in shown
    assert "Energy: one GPU board" in (folder / "report.md").read_text("utf-8")


def test_the_start_of_the_driver_is_found(folder: Path) -> None:
    (found,) = [one for one in report(folder)["results"] if one["rule"] == "driver-start"]
    assert found["outcome"] == "finding"
    assert "persistence mode off" in {row["label"]: row["value"] for row in report(folder)["machine"]}["GPU 0"]


def test_other_prices_need_no_other_recording(folder: Path, tmp_path: Path) -> None:
    done = tfdoctor("report", str(folder), "--out", str(tmp_path), "--format", "json", "--usd-per-kwh", "0.6")
    assert done.returncode == 0, done.stderr
    (before,), (after,) = (report(one)["energy"]["rows"] for one in (folder, tmp_path))
    assert after["run"]["usd"] == pytest.approx(2 * before["run"]["usd"])
    assert "gco2" not in after["run"]
    assert "J (" in " ".join(done.stdout.split())  # wherever the line ends
