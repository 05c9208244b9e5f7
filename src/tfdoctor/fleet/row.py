"""The row of a recording in the table of a fleet, from its diagnosis."""

from dataclasses import replace
from typing import Any

from tfdoctor.diagnosis import Diagnosis, Result
from tfdoctor.diagnosis.fleet_report import FleetFinding, FleetRun
from tfdoctor.fleet import names
from tfdoctor.recording import Manifest
from tfdoctor.report.entries import entries
from tfdoctor.report.words import pace_ms
from tfdoctor.scrub import paths
from tfdoctor.terms.humanize import place
from tfdoctor.terms.json_form import number
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.terms.verdict import Bound, Finding


def row(known: FleetRun, manifest: Manifest | None, diagnosis: Diagnosis) -> FleetRun:
    """Return a row with what the diagnosis says; ``known`` has the place and the files."""
    subject, steps = diagnosis.subject, diagnosis.steps
    step_ms, together = pace_ms(diagnosis) or steps.shown_ms, diagnosis.together  # as its page says
    share = together.share if together else _nothing_to_save(diagnosis)
    return replace(
        known,
        user=next(iter(paths.of_path(manifest.cwd)), "") if manifest else "",  # of the home folder
        host=(manifest.host.name if manifest else "") or next(iter(subject.hosts), ""),
        device=subject.device.value if subject.device else "",
        device_name=subject.device_name,
        devices=_devices(diagnosis),
        steps=max(steps.count, len(steps.rows)),
        hours=number(names.hours(manifest, step_ms)),
        step_ms=number(step_ms),
        parts_ms={part: number(time) or 0.0 for part, time in steps.shown_breakdown_ms.items()},
        trust=diagnosis.trust.level.value,
        missing=steps.missing,
        saving_share=number(share),
        saving_bound=(together.bound if together else Bound.EXPECTED).value,
        findings=tuple(
            _finding(entry.result, entry.result.outcome)
            for entry in entries(diagnosis)
            if isinstance(entry.result.outcome, Finding)
        ),
        **_of_run(diagnosis),
    )


def _of_run(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the time of the whole run and what all changes save of it; {} where it is not known whole.

    One that was ended after its traced steps, as asked, mostly starts: what it wastes is that of its steps.
    """
    run, together = diagnosis.run, diagnosis.run_together
    if run is None or not run.whole or (run.ended_early and diagnosis.steps.shown_ms):
        return {}
    # Nothing is saved of a run that no change shortens; where a change is known, and not what it saves, it is open.
    alone = None if any(map(_is_unpriced, diagnosis.results)) else 0.0
    share = together.share if together else alone
    return {
        "run_hours": number(run.total_ms / MS_PER_HOUR),
        "run_saving_share": number(share),
        "run_saving_bound": (together.bound if together else Bound.EXPECTED).value,
    }


MS_PER_HOUR = 3_600_000.0


def _is_unpriced(result: Result) -> bool:
    """Whether a finding names time that a change spares, and its saving is unknown."""
    finding = result.outcome
    if not isinstance(finding, Finding) or result.rule.general:
        return False
    return bool(finding.effects or finding.run_effects) and not (result.saving or result.run)


def _nothing_to_save(diagnosis: Diagnosis) -> float | None:
    """Return 0 for a known step that no finding's change shortens; None where the savings are unknown.

    Low trust without a finding says little: most rules could not check the run.
    """
    unknown = any(
        isinstance(result.outcome, Finding)
        and result.outcome.effects
        and not result.rule.general
        and result.saving is None
        for result in diagnosis.results
    )
    doubtful = diagnosis.trust.level is TrustLevel.LOW or diagnosis.steps.shown_ms is None
    return None if unknown or doubtful else 0.0


def _finding(result: Result, finding: Finding) -> FleetFinding:
    saving, severity = result.saving, result.severity or finding.severity
    bounded = result.run or saving
    return FleetFinding(
        rule=result.rule.name,
        severity=severity.name.lower() if severity else None,
        share=number(saving.share) if saving else None,
        bound=(bounded.bound if bounded else Bound.EXPECTED).value,
        summary=finding.summary,
        at=place(result.place),
        run_share=number(result.run.share) if result.run else None,
    )


def _devices(diagnosis: Diagnosis) -> int | None:
    """Return the devices of all hosts, as many on each as on the one that the report shows.

    Without a trace they are unknown: then the machine is one, as it is of a run on CPUs.
    """
    machine = 1 if diagnosis.run and diagnosis.run.whole else None
    used = diagnosis.subject.devices_used or machine
    hosts = len(diagnosis.hosts.rows) if diagnosis.hosts else 1
    return used * hosts if used else None
