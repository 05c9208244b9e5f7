"""The agent calls functions that it took before the script: no double, stopped clock or greenlet reaches them."""

import importlib
import io

from tests.capture.kit import *

kept: Any = agent.load("process.kept")
FOLDER = Path(kept.__file__).parents[1]
OF_THE_SCRIPT = {
    "process/changed_files.py": "io",  # patched
    "run/whole.py": "os",  # patched
    "run/waiting.py": "threading",  # its files and its table of threads are read
}
"""Modules of the script that the agent looks at."""


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a module imports while it runs, and functions that are called by their name."""
    match node:
        case ast.If(test=ast.Name()):
            return  # TYPE_CHECKING
        case ast.Import(names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(name), level=0) | ast.Call(func=ast.Name(name)):
            yield name
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def test_every_module_uses_what_was_kept() -> None:
    replaced = {"_thread", "io", "json", "os", "time", "threading", "open", "queue", "socket", "subprocess"}
    found = {
        (str(path.relative_to(FOLDER)), name)
        for path in FOLDER.rglob("*.py")
        for name in replaced.intersection(imported(ast.parse(path.read_text())))
    }
    assert found == set(OF_THE_SCRIPT.items())


@each("time.sleep", "time.perf_counter_ns", "os.replace", "json.dumps")
def test_a_double_is_not_called(name: str) -> None:
    module, _, function = name.partition(".")
    with mock.patch(name) as double:
        ours = getattr(getattr(kept, module), function)
        assert ours is not getattr(sys.modules[module], function) is double
    assert ours.__name__ == getattr(sys.modules[module], function).__name__


def test_functions_of_python_call_none_of_the_doubles() -> None:
    """`os.path.exists` asks `os.stat`, `abspath` joins, `makedirs` asks `path.exists`."""
    names = ("os.stat", "os.path.join", "os.path.exists", "os.path.isdir", "posixpath.normpath", "os.mkdir")
    with contextlib.ExitStack() as patches:
        doubles = [patches.enter_context(mock.patch(name)) for name in names]
        found = [kept.os.path.exists(path) for path in (kept.os.path.abspath("/tmp/../tmp"), "/nothing/here")]
        kept.os.makedirs("/tmp", exist_ok=True)
    assert (found, [double.called for double in doubles]) == ([True, False], [False] * 6)


def test_a_double_of_open_is_not_called(tmp_path: Path) -> None:
    log = agent.load("process.journal").Journal(str(tmp_path))
    with mock.patch("builtins.open") as double, mock.patch("io.open"), mock.patch("os.replace"):
        log.write()
    assert not double.called
    assert json.loads((tmp_path / "agent.json").read_text())["pid"] == os.getpid()


def test_no_search_for_the_clocks_finds_them() -> None:
    """As libraries do that stop the clock: in all modules, and in all dictionaries that hold one."""
    clocks = {time.perf_counter_ns, time.monotonic, time.thread_time, time.sleep, io.open}
    agent.load("installed")
    agents = [vars(module) for name, module in sys.modules.items() if name.startswith(agent.NAME)]
    assert len(agents) > 30
    assert not [names for names in agents if clocks & {value for value in names.values() if callable(value)}]
    holders = [one for clock in clocks for one in gc.get_referrers(clock) if isinstance(one, dict)]
    assert not [one for one in holders if str(one.get("__name__")).startswith(agent.NAME)]


def test_the_time_of_day_is_that_of_the_system() -> None:
    assert abs(kept.time.time_ns() - time.time_ns()) < 1e8
    assert abs(kept.time.time() - time.time()) < 0.1


def test_a_fork_of_another_thread_has_another_main_thread() -> None:
    told, out = os.pipe()

    def fork() -> None:
        if not os.fork():
            os.write(out, b"yes" if kept.main_thread() == threading.get_ident() else b"no")
            os._exit(0)  # noqa: SLF001 - as a fork ends

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert os.read(told, 3) == b"yes"
    os.wait()


def test_the_account_goes_on_where_greenlets_replace_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """`threading` then knows the main thread by another number, and no longer by its own."""
    clock = agent.load("run.clock").CallClock()
    clock.begin(threading.get_ident())
    monkeypatch.setattr(threading, "_active", {7: threading.main_thread()})
    monkeypatch.setattr(threading, "main_thread", lambda: mock.Mock(ident=7))
    assert clock.follows()
    assert clock.thread == kept.main_thread() == threading.get_ident()


def test_files_of_ours_have_the_permissions_of_their_folder(tmp_path: Path) -> None:
    """Trap: a script's `umask` that allows nothing would make the recording unreadable."""
    tmp_path.chmod(0o750)
    before = os.umask(0o777)
    try:
        agent.load("process.journal").Journal(str(tmp_path)).write()
    finally:
        os.umask(before)
    assert (tmp_path / "agent.json").stat().st_mode & 0o777 == 0o640


def test_the_door_takes_what_is_kept_before_the_script_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent may come later, with TensorFlow."""
    monkeypatch.syspath_prepend(str(FOLDER.parent / "site"))
    door: Any = importlib.import_module("_tfdoctor_door")
    monkeypatch.delitem(sys.modules, "_tfdoctor_door")
    own = {"gc", "io", "_thread", "os", os.path.__name__, "time"}
    assert {name for name in own if door.TAKEN[name] == vars(sys.modules[name])} == own
