"""The program of a trial: files that change while it runs, and whether its runs may take turns."""

from tests.trial.kit import *


@each("x = 22\n", "x = 2\n", None)
def test_a_file_that_changes_is_one_sentence(text: str | None, tmp_path: Path) -> None:
    """Trap: of the same size, and with the former time, as some editors and tools leave it."""
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    originals, before = texts_of([path]), path.stat()
    os.utime(path, ns=(1, 1))  # touched: the text is the same
    must_be_unchanged(originals)
    path.unlink()
    if text is not None:
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match=r"train.py changed while the trial ran, so nothing is"):
        must_be_unchanged(originals)


@cases(
    (DeviceKind.CPU, 0.0, 0.5, 4e9),
    (DeviceKind.CPU, 0.3, 1.8, 4e9),  # for input that its cores compute
    (DeviceKind.CPU, 0.3, 0.5, None),  # perhaps for a disk, which works on for a stopped process
    (DeviceKind.CPU, 0.3, None, None),
    (DeviceKind.CPU, 0.03, 0.5, 4e9),
    (DeviceKind.GPU, 0.0, 1.0, None),
)
def test_runs_that_compute_on_cores_may_take_turns(
    device: DeviceKind, input_share: float, cores_run: float | None, bytes_: float | None
) -> None:
    parts = {"input": input_share, "device": 1 - input_share}
    conditions = replace(MACHINE, cores_usable=2, cores_run=cores_run, host_bytes=4e9)
    subject = replace(SUBJECT, device=device)
    assert bytes_beside_others(report(series(0), parts, conditions=conditions, subject=subject)) == bytes_
