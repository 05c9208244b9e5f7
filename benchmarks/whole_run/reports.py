"""Runs a program under tfdoctor and reads what its JSON report says of the run."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

NOTHING: Mapping[str, str] = MappingProxyType({})

LONGEST_S = 3600
"""Seconds after which a program counts as hanging."""


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A finding in the order of the report's list: its lines, and its share of the run."""

    rule: str
    severity: str
    topic: str
    summary: str
    lines: tuple[
        tuple[str, int], ...
    ]  # first that of the finding itself, then those of its evidence
    own: int = 0  # how many of them are its own or its remedies'
    share: float | None = None  # of the run, that its change saves
    bound: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a report says of a run: its findings in order, and its phases in ms."""

    findings: tuple[RunFinding, ...]
    phases: Mapping[str, float]
    total_ms: float
    exit_code: int = 0

    @classmethod
    def read(cls, file: Path, exit_code: int = 0) -> Self:
        """Read a JSON report; a program without one has no findings and no phases."""
        if not file.is_file():
            return cls((), {}, 0.0, exit_code)
        report: dict[str, Any] = json.loads(file.read_text("utf-8"))
        run = report.get("run") or {"phases": [], "total_ms": 0.0}
        phases = {row["phase"]: row["ms"] for row in run["phases"]}
        return cls(tuple(_in_order(report)), phases, run["total_ms"], exit_code)

    @classmethod
    def of(cls, script: Path, out: Path, environment: Mapping[str, str] = NOTHING) -> Self:
        """Profile a program into a folder, or read what an earlier run left there."""
        code = out / "exit-code"
        if not code.is_file():
            shutil.rmtree(out, ignore_errors=True)
            command = [
                sys.executable,
                "-m",
                "tfdoctor",
                "profile",
                "-q",
                "--out",
                str(out),
                script.name,
            ]
            done = subprocess.run(
                command, cwd=script.parent, env=os.environ | QUIET | dict(environment), check=False,
                timeout=LONGEST_S,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            out.mkdir(parents=True, exist_ok=True)
            code.write_text(str(done.returncode), encoding="utf-8")
        return cls.read(out / "report.json", int(code.read_text("utf-8")))

    @classmethod
    def again(cls, out: Path) -> Self:
        """Diagnose a recording by the rules as they are now."""
        command = [sys.executable, "-m", "tfdoctor", "report", "--format", "json", str(out)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return cls.read(out / "report.json", int((out / "exit-code").read_text("utf-8")))


def _in_order(report: Mapping[str, Any]) -> Iterator[RunFinding]:
    """Yield the findings, first those of the list of changes, in its order."""
    found = {r["rule"]: r for r in report["results"] if r["outcome"] == "finding"}
    listed = [entry["rule"] for entry in report.get("entries", ())]
    for rule in dict.fromkeys([*listed, *found]):
        if rule in found and found[rule]["topic"] != "recording":
            yield _finding(found[rule])


def _finding(result: Mapping[str, Any]) -> RunFinding:
    own = [result["at"], *(remedy["at"] for remedy in result["remedies"])]
    own = [at for at in own if at and at.get("kind", "line") == "line"]
    cells = [cell for item in result["evidence"] for row in item.get("rows", ()) for cell in row]
    listed = [cell for cell in cells if isinstance(cell, dict) and "path" in cell]
    run = result.get("run") or {}
    return RunFinding(
        rule=result["rule"],
        severity=result["severity"],
        topic=result["topic"],
        summary=result["summary"],
        lines=tuple((at["path"], at["line"]) for at in (*own, *listed)),
        own=len(own),
        share=run.get("share"),
        bound=run.get("bound", ""),
    )
