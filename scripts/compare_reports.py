"""Compares the JSON reports of two versions of tfdoctor on the same recordings, apart from their texts.

``python scripts/compare_reports.py --base REVISION FOLDER...`` reports on every recording below the folders
twice, with the working tree and with the source at the revision, in processes of their own, and prints
the differences: fields, numbers, verdicts, severities, locations, the order of results. Sentences and labels
may differ; with ``--figures`` those are listed whose numbers differ, with ``--texts`` they may not differ either.
With ``--pages`` what every other format and the terminal show is compared as well: of HTML its text, its links and
the data of its charts.
``--kept`` names a folder in which the revision's reports stay for the next comparison. Exit code 1 when anything
else differs.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

IDENTIFIERS = frozenset(
    """
    after bound by command device device_name host hosts keras kind layer level name operation others outcome
    path rule rules severity shown source stage tensorflow topic trial unit version
    """.split()  # noqa: SIM905 - one a line would be a page
)
"""Fields whose strings are compared; strings of other fields are texts."""

WORKER = """
import contextlib, io, json, sys
from pathlib import Path
from tfdoctor import cli
from tfdoctor.trace import xprof
xprof.LARGEST_BYTES = -1  # not asked: the second opinion is xprof's, and takes longer than all the rest
written, printed = (names.split(",") if names else [] for names in sys.argv[1:])
def told(path, *options):
    log = io.StringIO()
    sys.argv = ["tfdoctor", "report", path, *options]
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            return cli.main() or 0, log.getvalue()
        except SystemExit as end:
            return end.code or 0, log.getvalue()
for path, out in json.load(sys.stdin):
    code, text = told(path, "--format", ",".join(written), "--out", out)
    Path(out).mkdir(parents=True, exist_ok=True)
    Path(out, "terminal.txt").write_text(text.replace(out, "OUT"))
    if Path(out, "report.json").is_file():
        for name in printed:  # read from the stored report
            Path(out, name + ".txt").write_text(told(out + "/report.json", "--format", name)[1].replace(out, "OUT"))
    Path(out, "end.json").write_text(json.dumps({"exit_code": code}))
"""

Difference = tuple[str, object, object]

WRITTEN, PRINTED = ("json", "html", "md", "sarif", "gitlab"), ("llm", "github")


class Shown(HTMLParser):
    """What a page shows, in its order: texts, and what is read aloud or linked; data of charts as JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Any] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a script or a style, and what an element says beside its text."""
        known = dict(attrs)
        data = tag == "script" and known.get("type") == "application/json"
        self.inside = [*self.inside, "json" if data else tag] if tag in ("script", "style") else self.inside
        self.texts += [
            f"{name}={known[name]}" for name in ("title", "aria-label", "alt", "href") if known.get(name)
        ]

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a script or a style."""
        self.inside = self.inside[:-1] if tag in ("script", "style") else self.inside

    def handle_data(self, data: str) -> None:
        """Note what is shown, or drawn."""
        if self.inside[-1:] == ["json"]:
            self.texts.append(json.loads(data))
        elif not self.inside and data.split():
            self.texts.append(" ".join(data.split()))


def main() -> None:
    """Write all reports twice and print the differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--base", default="HEAD", metavar="REVISION", help="[default: HEAD]")
    parser.add_argument("--figures", action="store_true", help="list texts whose numbers differ")
    parser.add_argument("--texts", action="store_true", help="texts may not differ either")
    parser.add_argument("--pages", action="store_true", help="compare every format and the terminal")
    parser.add_argument("--only", type=int, metavar="N", help="about so many recordings, spread over all")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="where the revision's reports stay")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time [default: 2]")
    options = parser.parse_args()
    recordings = sorted({path for folder in options.folders for path in recordings_below(folder)})
    recordings = recordings[:: max(1, len(recordings) // options.only) if options.only else 1]
    if not recordings:
        parser.error("there is no recording below these folders: name one that holds some")
    with tempfile.TemporaryDirectory() as scratch:
        source, base = checked_out(options.base, Path(scratch, "base")), revision(options.base)
        formats = (WRITTEN, PRINTED) if options.pages else (("json",), ())
        before = Path(options.kept or scratch, f"{base}-pages" if options.pages else base)
        after = Path(scratch, "after")
        missing = [path for path in recordings if not (before / number_of(path) / "end.json").is_file()]
        report(source, missing, before, options.jobs, formats)
        report(ROOT / "src", recordings, after, options.jobs, formats)
        compared = [(path, list(differences(read(before, path), read(after, path)))) for path in recordings]
        reports = sum(len(list((folder / number_of(path)).glob("*report.json")))
                      for folder in (before, after) for path in recordings)  # fmt: skip
    sys.exit(print_differences(compared, reports, figures=options.figures, texts=options.texts))


def revision(name: str) -> str:
    """Return the hash of a revision."""
    command = ["git", "rev-parse", f"{name}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - the developer's own


def number_of(path: Path) -> str:
    """Return the name of the folder with the reports on a recording."""
    return hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]


def print_differences(
    compared: Sequence[tuple[Path, list[Difference]]], reports: int, *, figures: bool, texts: bool = False
) -> int:
    """Print the differences and return the exit code."""
    differing = 0
    for path, pairs in compared:
        hard = [one for one in pairs if texts or not one[0].startswith(("text ", "words "))]
        differing += bool(hard)
        for where, old, new in [one for one in pairs if one in hard or (figures and one[0].startswith("text "))]:
            print(f"{path}: {where}: {old!r} -> {new!r}")
    print(f"{len(compared)} recordings, {reports} reports written, {differing} recordings differ")
    return 1 if differing else 0


def recordings_below(folder: Path) -> Iterator[Path]:
    """Yield recordings, run folders of others and single traces at or below a folder."""
    manifests = {path.parent for path in folder.rglob("tfdoctor.json")}
    tops = {path for path in manifests if not manifests & set(path.parents)}
    yield from tops
    for trace in folder.rglob("*.xplane.pb"):
        if not tops & set(trace.parents):
            above = next((p.parent for p in trace.parents if p.name == "plugins"), None)
            yield above or trace


def checked_out(revision: str, folder: Path) -> Path:
    """Write the source at a revision into a folder; return the path of its packages."""
    archive = subprocess.run(  # noqa: S603 - the revision is the developer's own
        ["git", "archive", revision, "src"],  # noqa: S607 - git, as the developer has it
        cwd=ROOT, check=True, capture_output=True,
    ).stdout  # fmt: skip
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)  # noqa: S603, S607 - same
    return folder / "src"


def report(
    source: Path, recordings: Sequence[Path], out: Path, jobs: int, formats: Sequence[Sequence[str]]
) -> None:
    """Write a report of each recording, into a folder of its own, with the package in a source folder."""
    wanted = [(str(path.resolve()), str(out / number_of(path))) for path in recordings]
    environment = {"PYTHONPATH": str(source), "PATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

    def work(part: Sequence[tuple[str, str]]) -> None:
        command = [sys.executable, "-c", WORKER, *map(",".join, formats)]
        subprocess.run(command, input=json.dumps(part), text=True, check=True, env=environment)  # noqa: S603 - this Python

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, [wanted[at::jobs] for at in range(jobs) if wanted[at::jobs]]))


def read(out: Path, recording: Path) -> dict[str, Any]:
    """Return a report's JSON files, including the exit code of the command."""
    files = sorted((out / number_of(recording)).iterdir())
    return {path.name: _content(path) for path in files}


def _content(path: Path) -> Any:  # noqa: ANN401 - JSON
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".json", ".sarif"):
        return json.loads(text)
    if path.suffix == ".html":
        shown = Shown()
        shown.feed(text)
        return shown.texts
    return text.splitlines()


def differences(old: Any, new: Any, where: str = "") -> Iterator[Difference]:  # noqa: ANN401 - JSON
    """Yield where two JSON values differ in more than their texts; "text …" where a text's numbers do."""
    match old, new:
        case dict(), dict():
            for key in sorted(old.keys() | new.keys()):
                yield from _entries(key, old, new, f"{where}/{key}")
        case list(), list():
            if len(old) != len(new):
                yield where, f"{len(old)} items", f"{len(new)} items"
            for number, (first, second) in enumerate(zip(old, new, strict=False)):
                yield from differences(first, second, f"{where}/{number}")
        case str(), str():
            yield from _texts(old, new, where)
        case _ if old != new:
            yield where, old, new


def _entries(key: str, old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> Iterator[Difference]:
    if key in old and key in new:
        yield from differences(old[key], new[key], where)
    else:
        yield where, key in old, key in new


def _texts(old: str, new: str, where: str) -> Iterator[Difference]:
    field = next((part for part in reversed(where.split("/")) if not part.isdigit()), "")
    if old != new and (field in IDENTIFIERS or bool(old) != bool(new)):
        yield where, old, new
    elif re.findall(r"\d[\d.,]*", old) != re.findall(r"\d[\d.,]*", new):
        yield f"text {where}", old, new
    elif old != new:
        yield f"words {where}", old, new


if __name__ == "__main__":
    main()
