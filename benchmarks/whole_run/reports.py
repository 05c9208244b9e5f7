"""Runs a program under tfdoctor and reads what its JSON report says of the run."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks import commands
from benchmarks.commands import Variables

LONGEST_S = 3600
"""Seconds after which a program counts as hanging."""


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A finding in the order of the report's list: its lines, and its share of the run."""

    rule: str
    severity: str
    topic: str
    summary: str
    lines: tuple[tuple[str, int], ...]  # first that of the finding itself, then those of its evidence
    own: int = 0  # how many of them are its own or its remedies'
    share: float | None = None  # of the run, that its change saves


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a report says of a run: its findings in order, and its phases in ms."""

    findings: tuple[RunFinding, ...]
    phases: Mapping[str, float]
    total_ms: float

    @classmethod
    def read(cls, out: Path) -> Self:
        """Read the JSON report in a recording; a program without one has no findings and no phases."""
        report = commands.report(out)
        run = report.get("run") or {"phases": [], "total_ms": 0.0}
        phases = {row["phase"]: row["ms"] for row in run["phases"]}
        return cls(tuple(_in_order(report)), phases, run["total_ms"])

    @classmethod
    def of(cls, script: Path, out: Path, variables: Variables = None) -> Self:
        """Profile a program into a folder; diagnose what an earlier run left there by the rules as they are now."""
        done = out / "exit-code"  # written last
        if done.is_file():
            commands.ended(*commands.TFDOCTOR, "report", "--format", "json", out)
            return cls.read(out)
        shutil.rmtree(out, ignore_errors=True)
        command = (*commands.TFDOCTOR, "profile", "-q", "--out", out, script.name)
        profile = commands.ended(*command, folder=script.parent, limit_s=LONGEST_S, variables=variables, read=False)
        out.mkdir(parents=True, exist_ok=True)
        done.write_text(str(profile.returncode), encoding="utf-8")
        return cls.read(out)


def _in_order(report: Mapping[str, Any]) -> Iterator[RunFinding]:
    """Yield the findings, first those of the list of changes, in its order."""
    found = {r["rule"]: r for r in report.get("results", ()) if r["outcome"] == "finding"}
    listed = [entry["rule"] for entry in report.get("entries", ())]
    for rule in dict.fromkeys([*listed, *found]):
        if rule in found and found[rule]["topic"] != "recording":
            yield _finding(found[rule])


def _finding(result: Mapping[str, Any]) -> RunFinding:
    own = [result["at"], *(remedy["at"] for remedy in result["remedies"])]
    own = [at for at in own if at and at.get("kind", "line") == "line"]
    cells = [cell for item in result["evidence"] for row in item.get("rows", ()) for cell in row]
    listed = [cell for cell in cells if isinstance(cell, dict) and "path" in cell]
    return RunFinding(
        rule=result["rule"],
        severity=result["severity"],
        topic=result["topic"],
        summary=result["summary"],
        lines=tuple((at["path"], at["line"]) for at in (*own, *listed)),
        own=len(own),
        share=(result.get("run") or {}).get("share"),
    )
