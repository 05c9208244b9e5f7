"""The history of the runs that were read: grouped into series, in the order of their commits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tfdoctor import __version__
from tfdoctor.diagnosis.history_report import Accepted, History, NamedBaseline, Series
from tfdoctor.history.kept import KeptHistory
from tfdoctor.history.runs import ReadRun, SeriesKey
from tfdoctor.history.series import SHOWN, UNTRACED, Demand, series
from tfdoctor.rulebook.values import hint
from tfdoctor.terms.errors import InputError


def history(
    read: Sequence[ReadRun],
    kept: KeptHistory,
    demand: Demand,
    titles: Mapping[str, str],
    unread: Sequence[tuple[str, str]] = (),
) -> History:
    """Return the series of these runs, those whose newest run is the newest first."""
    groups: dict[SeriesKey, list[ReadRun]] = defaultdict(list)
    for one in sorted(read, key=lambda one: one.order):
        groups[one.key].append(one)
    newest_first = sorted(groups.values(), key=lambda runs: runs[-1].order, reverse=True)
    return History(
        version=__version__,
        series=tuple(
            series(
                runs,
                demand,
                dict(titles),
                [one for one in kept.baselines if one.program == runs[0].key.program],
                [one for one in kept.accepted if one.program == runs[0].key.program],
            )
            for runs in newest_first
        ),
        unread=tuple(unread),
        last=demand.last,
        limit=demand.limit,
    )


def of_program(read: Sequence[ReadRun], program: str) -> list[ReadRun]:
    """Return the runs of a program.

    Raises:
        InputError: there is none.
    """
    chosen = [one for one in read if one.key.program == program]
    if not chosen:
        names = sorted({one.key.program for one in read})
        raise InputError(f"no run of {program!r}: {hint(program, names)}")
    return chosen


def named(name: str, run: ReadRun) -> NamedBaseline:
    """Return a run as a baseline of this name."""
    step = run.untraced_ms or run.shown_ms
    found = run.with_step(step)
    return NamedBaseline(
        name=name,
        program=run.key.program,
        commit=found.commit,
        recorded=found.recorded,
        step=UNTRACED if run.untraced_ms else SHOWN,
        values={metric.value: value for metric, value in found.values.items()},
    )


def accepted(what: str, commit: str, shown: Sequence[Series], *, by: str, why: str) -> Accepted:
    """Return an accepted change, by the whole hash of its commit, which is that of a run.

    Raises:
        InputError: no run or several commits begin so, or no run of the commit has the metric or the finding.
    """
    runs = [(one, run) for one in shown for run in one.runs if run.commit.startswith(commit)]
    commits = sorted({run.commit for _, run in runs if commit})
    if not any(run.commit for one in shown for run in one.runs):
        raise InputError(
            "no run has a commit, at which a change could be accepted: record the program in its git repository."
        )
    if not commits:
        raise InputError(f"no run is of commit {commit!r}: `tfdoctor history` lists the commits.")
    if len(commits) > 1:
        raise InputError(f"{len(commits)} commits begin with {commit!r}: write more of it.")
    programs = sorted({one.program for one, _ in runs})
    if len(programs) > 1:
        raise InputError(f"commit {commit!r} has runs of {' and '.join(programs)}: choose one with --program.")
    known = {metric.value for _, run in runs for metric in run.values}
    known |= {rule for _, run in runs for rule in run.findings}
    if what not in known:
        raise InputError(f"no run of commit {commit!r} has {what!r}: {hint(what, sorted(known))}")
    today = datetime.now(UTC).date().isoformat()
    return Accepted(programs[0], what, commits[0], by, today, why)
