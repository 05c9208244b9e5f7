"""Which recordings are found below folders and patterns."""

from tests.kit import *
from tests.remote import servers
from tfdoctor.fleet.places import found, recordings

TRACE = "plugins/profile/2026_11_01_10_00_00/host.xplane.pb"


SECOND = "/logs/fit/plugins/profile/2026_11_02_10_00_00"


@cases(
    (  # a root is a recording, a run folder or a trace
        [
            *("/r/a/tfdoctor.json", f"/r/a/{TRACE}", "/r/a/report.html", f"/logs/fit/{TRACE}"),
            *(f"{SECOND}/{name}" for name in ("one.xplane.pb", "two.xplane.pb", "overview.json")),
            *("/traces/a.xplane.pb", "/traces/b.xplane.pb", "/traces/notes.txt"),
        ],
        {
            "/r/a": (TRACE, "tfdoctor.json"),
            "/logs/fit/plugins/profile/2026_11_01_10_00_00": ("host.xplane.pb",),
            SECOND: ("one.xplane.pb", "two.xplane.pb"),
            "/traces/a.xplane.pb": ("",),
            "/traces/b.xplane.pb": ("",),
        },
    ),
    (  # workers and processes belong to their run
        [
            *("/r/workers/one/tfdoctor.json", "/r/workers/two/tfdoctor.json", f"/r/{TRACE}"),
            *("/killed/tfdoctor.json", "/killed/processes/7/agent.json", f"/killed/processes/7/{TRACE}"),
        ],
        {
            "/r": (TRACE, "workers/one/tfdoctor.json", "workers/two/tfdoctor.json"),
            "/killed": ("processes/7/agent.json", f"processes/7/{TRACE}", "tfdoctor.json"),
        },
    ),
    # Samples beside the trace of another profiler belong to it:
    ([f"/jax/{TRACE}", "/jax/samples.jsonl"], {"/jax": (TRACE, "samples.jsonl")}),
)
def test_what_the_files_of_a_recording_are(files: list[str], found: dict[str, tuple[str, ...]]) -> None:
    assert recordings(files) == found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/one", "a/two", "b/three"):
        trace = tmp_path / name / TRACE
        trace.parent.mkdir(parents=True)
        trace.write_bytes(b"\n\0")
    (tmp_path / "a/one/tfdoctor.json").write_text("{}")
    return tmp_path


def below(tree: Path, pattern: str) -> str:
    """Return the names of what is found, without the run folders of bare traces."""
    named = [one.place.removeprefix(f"{tree}/") for one in found([str(tree / pattern)])[0]]
    return " ".join(name.removesuffix("/" + TRACE.rpartition("/")[0]) for name in named)


@cases(
    *((pattern, "a/one a/two b/three") for pattern in ("", "**/plugins/profile/*", "*", "**/*.xplane.pb")),
    *((pattern, "a/one a/two") for pattern in ("a", "a/**")),
    ("*/t*", "a/two b/three"),
    *((f"b/three/{pattern}", "b/three") for pattern in ("plugins/profile/2026*", TRACE)),
    *((f"a/one/{pattern}", "a/one") for pattern in ("tfdoctor.json", TRACE.rpartition("/")[0])),
    ("a/two/plugins", "a/two"),
)
def test_patterns(pattern: str, names: str, tree: Path) -> None:
    assert below(tree, pattern) == names


def test_places_are_found_once_without_dots_and_told_if_empty(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "b")
    assert [one.place for one in found(["../a/one"])[0]] == [str(tree / "a/one")]
    (tree / "empty").mkdir()
    places, empty = found([str(tree / "empty"), str(tree), str(tree / "a"), str(tree / "z*")])
    assert len(places) == 3
    assert empty == (str(tree / "empty"), str(tree / "z*"))
    for name, why in (("nowhere", "There is nothing at"), ("c*", "No recording at")):
        with pytest.raises(InputError, match=why):
            found([str(tree / name)])


@each(lambda trace: os.utime(trace, (1, 1)), lambda trace: trace.write_bytes(b"\n\0\n\0"), ids=["time", "size"])
def test_a_stamp_changes_with_a_file(change: Callable[[Path], object], tree: Path) -> None:
    first, _ = found([str(tree)])
    assert found([str(tree)]) == (first, ())
    change(tree / "a/one" / TRACE)
    second, _ = found([str(tree)])
    assert [one.stamp == two.stamp for one, two in zip(first, second, strict=True)] == [False, True, True]


@each("br[1]", "st*ar", "wh?t", "with space", "ünï", "<b>", "it's")
def test_a_name_may_have_any_characters(name: str, tree: Path) -> None:
    (tree / "a" / "two").rename(tree / "a" / name)
    (one,), _ = found([str(tree / "a" / name)])
    assert one.place == str(tree / "a" / name / TRACE.rpartition("/")[0])
    assert len(found([str(tree)])[0]) == 3


def test_a_name_may_be_any_bytes(tree: Path) -> None:
    (tree / "a" / "two").rename(tree / "a" / os.fsdecode(b"r\xff1"))
    one = next(one for one in found([str(tree)])[0] if "\udcff" in one.place)
    assert "r\\udcff1" in one.shown
    assert len(one.key) == 64


def test_links_are_followed_to_what_is_not_there_itself(tree: Path) -> None:
    """Trap: `latest` is a second name of a run, and a link to a folder above would be followed for ever."""
    runs = tree / "runs"
    runs.mkdir()
    (tree / "b" / "three").rename(runs / "three")
    (runs / "latest").symlink_to(runs / "three")
    (runs / "elsewhere").symlink_to(tree / "a")
    (tree / "a" / "up").symlink_to(runs)
    (runs / "above").symlink_to("..")
    (runs / "gone").symlink_to(tree / "nowhere")
    assert below(runs, "") == "elsewhere/one elsewhere/two three"


def test_a_trace_may_be_a_link_and_no_pipe(tree: Path) -> None:
    links = tree / "links"
    links.mkdir()
    (links / "host.xplane.pb").symlink_to(tree / "b/three" / TRACE)
    os.mkfifo(links / "pipe.xplane.pb")
    (one,), _ = found([str(links)])
    assert (one.place, one.nbytes) == (str(links / "host.xplane.pb"), 2)


def test_a_web_server_that_lists_its_files_is_searched(tree: Path) -> None:
    with servers.web(tree) as address:
        places = [one.place for one in found([f"{address}/a"])[0]]
        assert places == [f"{address}/a/one", f"{address}/a/two/plugins/profile/2026_11_01_10_00_00"]


@cases(
    ("", "a/one a/two b/three kept/report.json"),
    *((pattern, "kept/report.json") for pattern in ("kept", "kept/*.json")),
    *((pattern, "a/one/report.json") for pattern in ("a/one/report.json", "*/*/report.json")),
    *((name, name) for name in ("kept/other.json", "a/one")),
)
def test_a_report_is_found_where_it_is_named_or_alone(pattern: str, names: str, tree: Path) -> None:
    (tree / "kept").mkdir()
    for name in ("a/one/report.json", "kept/report.json", "kept/other.json"):
        (tree / name).write_text("{}")
    assert below(tree, pattern) == names
