"""The environment variables of a run: the user's, and those that load the agent."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfdoctor import own_python
from tfdoctor.capture.plan import Kind, Plan

SITE = str(Path(__file__).parent / "site")

PLAN = "TFDOCTOR_PLAN"


def environment(plan: Plan, processes: Path) -> dict[str, str]:
    """Return the environment for the run; each agent creates its folder below `processes`."""
    hidden = plan.kind is not Kind.COMMAND
    return agent_environment(own_python.users(os.environ), agent_plan(plan, processes), hidden=hidden)


def agent_environment(variables: Mapping[str, str], settings: Mapping[str, Any], *, hidden: bool) -> dict[str, str]:
    """Return environment variables with those that load the agent.

    A command sees our variables, since launchers copy their environment (`env=dict(os.environ, …)`); the agent
    hides them from a script or a module.
    """
    inherited = variables.get("PYTHONPATH")
    others = [entry for entry in inherited.split(os.pathsep) if entry != SITE] if inherited else []
    empty = inherited in ("", os.pathsep.join([SITE, SITE]))
    paths = [SITE, *others, *([SITE] if empty else [])]  # twice marks a PYTHONPATH that was set but empty
    visibility = "hidden" if hidden else "visible"
    return {
        **variables,
        "PYTHONPATH": os.pathsep.join(paths),
        PLAN: f"{os.getpid()} {visibility} {json.dumps(settings)}",
    }


def agent_plan(plan: Plan, processes: Path) -> Mapping[str, Any]:
    """Return the part of the plan that the agent needs, as JSON."""
    return {
        "processes": str(processes),
        "steps": plan.steps,
        "warmup": plan.warmup,
        "seconds": plan.seconds,
        "stop_after": plan.stop_after,
        "trace": plan.trace,
        "watch_s": plan.watch_s,
    }
