"""The report as JSON: the contract for other programs, documented in docs/reference/json.md."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from tfdoctor.diagnosis import (
    PARTS,
    Account,
    BudgetCheck,
    Conditions,
    DeviceRates,
    Diagnosis,
    Edit,
    LimitSet,
    OperationRow,
    Order,
    PipelineStage,
    Relation,
    Result,
    Saving,
    Seen,
    Settings,
    SlowStepsSummary,
    StepRow,
    StepsSummary,
    Subject,
    Takes,
    Together,
    Turn,
)
from tfdoctor.report import hosts_json, sentences, timeline, trials_json
from tfdoctor.report.entries import Entry, entries
from tfdoctor.report.run.contract import RunContract
from tfdoctor.units import Quantity
from tfdoctor.verdict import (
    Cell,
    Errored,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Table,
)

SCHEMA = 1
"""Fields are only ever added; a field that changes its meaning makes it 2."""

DIGITS = 9
"""Significant digits: beyond them floats differ between machines and say nothing."""

MOST_OPERATIONS = 500
"""Operations in the contract of a page: EfficientNetB0 has 1,223, which take 280 kB."""

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the contract, sorted and in ASCII."""
    return _written(contract(diagnosis), indent=2, separators=(",", ": ")) + "\n"


def render_for_page(diagnosis: Diagnosis) -> str:
    """Return the contract on one line, with the operations that fit into a page."""
    content = contract(diagnosis)
    content["operations_omitted"] = max(0, len(content["operations"]) - MOST_OPERATIONS)
    content["operations"] = content["operations"][:MOST_OPERATIONS]
    return _written(content, indent=None, separators=(",", ":"))


def _written(content: Object, *, indent: int | None, separators: tuple[str, str]) -> str:
    return json.dumps(
        content, sort_keys=True, indent=indent, separators=separators, allow_nan=False
    )


def contract(diagnosis: Diagnosis) -> Object:
    """Return the diagnosis as the contract has it."""
    trust, xprof = diagnosis.trust, diagnosis.xprof
    return {
        "schema": SCHEMA,
        "tfdoctor": diagnosis.version,
        "subject": _subject(diagnosis.subject),
        "steps": _steps(diagnosis.steps),
        "breakdown_ms": _parts(diagnosis.steps.breakdown_ms),
        "untraced_breakdown_ms": _parts(diagnosis.steps.untraced_breakdown_ms),
        "accounts": [_account(account) for account in diagnosis.accounts],
        "unknown": list(sentences.unknown(diagnosis)),
        "trust": {"level": trust.level, "reasons": list(trust.reasons)},
        "results": [_result(result) for result in diagnosis.results],
        "entries": [
            _entry(entry, of_run=diagnosis.run_together is not None) for entry in entries(diagnosis)
        ],
        "together": _together(diagnosis.together) if diagnosis.together else None,
        "run": RUN.account(diagnosis.run),
        "run_together": RUN.together(diagnosis.run_together),
        "xprof": xprof and asdict(xprof),
        **_details(diagnosis),
        **_optional(diagnosis),
    }


def _optional(diagnosis: Diagnosis) -> Object:
    """Return the fields that only some reports have: several hosts, an order, settings of the user."""
    fields: Object = {}
    if diagnosis.hosts:
        fields["hosts"] = hosts_json.contract(diagnosis.hosts, number, _saving)
    if diagnosis.order:
        fields["order"] = _order(diagnosis.order)
    if diagnosis.settings != Settings():
        fields["settings"] = _settings(diagnosis.settings)
    if diagnosis.budgets:
        fields["budgets"] = [_budget(check) for check in diagnosis.budgets]
    if diagnosis.baseline:
        fields["baseline"] = asdict(diagnosis.baseline)
    if diagnosis.trials:
        fields["trials"] = trials_json.contract(diagnosis.trials, number, _saving, RUN.saving)
    return fields


def _budget(check: BudgetCheck) -> Object:
    return {
        "key": check.key,
        "unit": check.limit.unit.value,
        "limit": number(check.limit.value),
        "at_least": check.at_least,
        "state": check.state.value,
        "value": number(check.value.value) if check.value else None,
        "low": number(check.low.value) if check.low else None,
        "high": number(check.high.value) if check.high else None,
        "why": check.why,
        "at": _location(check.at),
    }


def _account(account: Account) -> Object:
    return {
        "part": account.part,
        "ms": number(account.total_ms),
        "state": account.state.value,
        "rules": list(account.rules),
        "why": list(account.why),
        "unexplained_ms": number(account.unexplained_ms),
        "seen": [_seen(seen) for seen in account.seen],
    }


def _seen(seen: Seen) -> Object:
    amount = {"value": number(seen.amount.value), "unit": seen.amount.unit.value}
    return {"what": seen.what, **amount, "at": _location(seen.at)}


def _entry(entry: Entry, *, of_run: bool) -> Object:
    return {
        "rule": entry.result.rule.name,
        "symptoms": [result.rule.name for result in entry.symptoms],
        "same": [result.rule.name for result in entry.same],
        "in_together": entry.in_sum,
        "included_in": list(entry.included_in),
        **({"in_run_together": entry.in_run_sum} if of_run else {}),
    }


def _together(together: Together) -> Object:
    return {
        "ms_per_step": number(together.per_step.value),
        "share": number(together.share),
        "rules": list(together.rules),
        "after_ms": _parts(together.after_ms),
        "bound": together.bound.value,
    }


def _order(order: Order) -> Object:
    return {
        "turns": [_turn(turn) for turn in order.turns],
        "relations": [_relation(relation) for relation in order.relations],
    }


def _turn(turn: Turn) -> Object:
    return {
        "rule": turn.rule,
        "ms_per_step": number(turn.saves.value),
        "bound": turn.bound.value,
    }


def _relation(relation: Relation) -> Object:
    return {
        "kind": relation.kind.value,
        "rule": relation.rule,
        "others": list(relation.others),
        "why": relation.why,
    }


def _settings(settings: Settings) -> Object:
    return {
        "off": [asdict(off) for off in settings.off],
        "limits": [_limit(limit) for limit in settings.limits],
        "own": list(settings.own),
    }


def _limit(limit: LimitSet) -> Object:
    numbers = {"value": number(limit.value), "default": number(limit.default)}
    return {"rule": limit.rule, "name": limit.name, "by": limit.by, **numbers}


def _details(diagnosis: Diagnosis) -> Object:
    return {
        "timeline": timeline.contract(diagnosis.timeline),
        "pipeline": [_stage(stage) for stage in diagnosis.pipeline],
        "pipeline_missing": diagnosis.pipeline_missing,
        "operations": [_operation(row) for row in diagnosis.operations],
        "operations_missing": diagnosis.operations_missing,
        "operations_omitted": 0,
        "conditions": _conditions(diagnosis.conditions),
        "rates": _rates(diagnosis.rates),
        "model": [_measure(measure) for measure in diagnosis.model],
        "samples": [_measure(measure) for measure in diagnosis.samples],
        "device_time": [_measure(measure) for measure in diagnosis.device_time],
        "device_time_missing": diagnosis.device_time_missing,
        "machine": [{"label": label, "value": value} for label, value in diagnosis.machine],
        "unrecorded": list(diagnosis.unrecorded),
    }


def _stage(stage: PipelineStage) -> Object:
    return {
        "name": stage.name,
        "parent": stage.parent,
        "self_ms": number(stage.self_ms),
        "parallelism": number(stage.parallelism),
        "calls": number(stage.calls),
        "critical": stage.critical,
        "written": stage.written,
        "at": _location(stage.at),
        "note": stage.note,
    }


def _operation(row: OperationRow) -> Object:
    return {
        "layer": row.layer,
        "operation": row.operation,
        "self_ms": number(row.self_ms),
        "share": number(row.share),
        "at": _location(row.at),
        "detail": row.detail,
        "flops": number(row.flops),
        "bytes": number(row.nbytes),
    }


def _conditions(conditions: Conditions) -> Object:
    return {
        "cpu_model": conditions.cpu_model,
        "cores_usable": number(conditions.cores_usable),
        "cores_run": number(conditions.cores_run),
        "cores_other": number(conditions.cores_other),
        "gpu_mhz": number(conditions.gpu_mhz),
        "batch_size": conditions.batch_size,
        "host_bytes": number(conditions.host_bytes),
        "device_bytes": number(conditions.device_bytes),
        "untraced_ms": number(conditions.untraced_ms),
        "matrix_unit": number(conditions.matrix_unit),
    }


def _rates(rates: DeviceRates | None) -> Object | None:
    if rates is None:
        return None
    return {
        "flop_per_s": number(rates.flop_s),
        "bytes_per_s": number(rates.bytes_s),
        "measured": rates.measured,
    }


def _subject(subject: Subject) -> Object:
    return {
        "title": subject.title,
        "command": list(subject.command),
        "device": subject.device or "",
        "device_name": subject.device_name,
        "devices_used": subject.devices_used,
        "devices_visible": subject.devices_visible,
        "framework": dict(subject.framework),
        "hosts": list(subject.hosts),
        "exit_code": subject.exit_code,
    }


def _steps(steps: StepsSummary) -> Object:
    return {
        "count": max(steps.count, len(steps.rows)),
        "source": steps.source if steps.rows else "none",
        "missing": steps.missing,
        "median_ms": number(steps.median_ms),
        "mean_ms": number(steps.mean_ms),
        "p10_ms": number(steps.p10_ms),
        "p90_ms": number(steps.p90_ms),
        "between_ms": number(steps.between_ms),
        "step_ms": number(steps.step_ms),
        "stalled": steps.stalled,
        "slow": _slow(steps.slow) if steps.slow else None,
        "too_few": steps.too_few,
        "untraced_ms": number(steps.untraced_ms),
        "rows": [_step(row) for row in steps.rows],
    }


def _slow(slow: SlowStepsSummary) -> Object:
    return {
        "count": slow.number,
        "ms": number(slow.ms),
        "timed_count": slow.timed,
        "timed_ms": number(slow.timed_ms),
    }


def _step(row: StepRow) -> Object:
    return {
        "number": row.number,
        "total_ms": number(row.total_ms),
        "parts_ms": _parts(row.parts_ms),
        "typical": row.steady,
    }


def _parts(times: Mapping[str, float]) -> Object:
    """Return every part: null where nothing is known of any."""
    return {part: number(times.get(part, 0.0)) if times else None for part in PARTS}


def _result(result: Result) -> Object:
    entry: Object = {
        "rule": result.rule.name,
        "topic": result.rule.topic.value,
        "severity": None,
        "summary": "",
        "reason": "",
        "saving": _saving(result.saving),
        "run": RUN.saving(result.run),
        "takes": _takes(result.takes),
        "measured": trials_json.measured(result.measured, number),
        "known": result.known,
        "at": None,
        "evidence": [],
        "remedies": [],
    }
    return entry | _outcome(result)


def _outcome(result: Result) -> Object:
    match result.outcome:
        case Finding() as finding:
            return _finding(result, finding)
        case Healthy(summary=summary, evidence=items):
            return {"outcome": "healthy", "summary": summary, "evidence": _evidences(items)}
        case NotApplicable(reason=reason):
            return {"outcome": "not-applicable", "reason": reason}
        case Errored(error=error, traceback=traceback):
            return {"outcome": "errored", "reason": error, "traceback": traceback}


def _finding(result: Result, finding: Finding) -> Object:
    severity = result.severity or finding.severity
    remedies = zip_longest(finding.remedies, result.edits)
    return {
        "outcome": "finding",
        "severity": severity.name.lower() if severity else None,
        "summary": finding.summary,
        "at": result.place and asdict(result.place),
        "evidence": _evidences(finding.evidence),
        "remedies": [_remedy(remedy, edit) for remedy, edit in remedies],
    }


def _saving(saving: Saving | None) -> Object | None:
    if saving is None:
        return None
    return {
        "ms_per_step": number(saving.per_step.value),
        "share": number(saving.share),
        "bound": saving.bound.value,
        "how": saving.how,
        "after": list(saving.after),
    }


def _takes(time: Takes | None) -> Object | None:
    if time is None:
        return None
    return {"ms_per_step": number(time.per_step.value), "share": number(time.share)}


def _evidences(items: Iterable[Evidence]) -> list[Object]:
    return [_evidence(item) for item in items]


def _evidence(item: Evidence) -> Object:
    match item:
        case Measure():
            return _measure(item)
        case Table(columns, rows):
            return {"columns": list(columns), "rows": [list(map(_cell, row)) for row in rows]}


def _measure(measure: Measure) -> Object:
    return {
        "label": measure.label,
        "value": number(measure.value.value),
        "unit": measure.value.unit.value,
        "limit": number(measure.limit.value) if measure.limit else None,
    }


def _cell(value: Cell) -> str | Object | None:
    match value:
        case str():
            return value
        case Quantity(amount, unit):
            return {"value": number(amount), "unit": unit.value}
        case Location():
            return _location(value)


def _edit(edit: Edit | None) -> Object | None:
    """Return the user's lines before and after, or None where the remedy has only an example."""
    if edit is None or not (edit.before or edit.after):
        return None
    return {
        "at": _location(edit.at),
        "before": edit.before,
        "after": edit.after,
        "in_patch": not edit.missing,
    }


def _remedy(remedy: Remedy, edit: Edit | None) -> Object:
    return {
        "action": remedy.action,
        "code": remedy.code,
        "at": _location(remedy.at),
        "trial": remedy.edit_id,
        "edit": _edit(edit),
    }


def _location(place: Location | None) -> Object | None:
    return {"path": place.path, "line": place.line} if place else None


def number(value: float | None) -> float | None:
    """Return a number with the digits that mean something; None for those that JSON does not have."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


RUN = RunContract(number, _location)
