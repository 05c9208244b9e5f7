"""``python xprof_child.py TRACE BYTES``: prints xprof's analysis of a trace as JSON.

Exits with 1 and a message if there is none. Run by path in its own process, limited to BYTES of address space.
The input pipeline analyzer writes an OpStats message into its cache, with the steps in exact picoseconds; its
tables are rounded, but have the verdict and the diagnostics. The log level must be set before the import.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from xprof.convert import _pywrap_profiler_plugin as xprof
from xprof.protobuf import op_stats_pb2, steps_db_pb2

TOOL = "input_pipeline_analyzer"
CACHE = "ALL_HOSTS.op_stats_v2.pb"


def main() -> None:
    """Print the tables and the steps of the analysis as one JSON object, or exit with its error."""
    trace, limit = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    data, answered = xprof.xspace_to_tools_data([trace], TOOL, {})
    if not answered:
        sys.exit(data.decode(errors="replace") or "xprof gave no reason")
    stats = op_stats_pb2.OpStats.FromString(Path(trace).with_name(CACHE).read_bytes())
    answer = {
        "tables": json.loads(data),
        "steps": [_step(step) for step in stats.step_db.step_sequence if step.step_info_per_core],
    }
    json.dump(answer, sys.stdout)


def _step(step: Any) -> dict[str, Any]:  # noqa: ANN401 - a protobuf without type stubs
    """Return a step as of its slowest core; CPU and GPU traces have one core, TPU traces several.

    Only CPU and GPU traces have times by event type.
    """
    cores = step.step_info_per_core
    info = max(cores.values(), key=lambda core: core.duration_ps)
    parts = steps_db_pb2.GenericStepBreakdown()
    has_parts = info.step_breakdown.Unpack(parts)
    return {
        "name": info.step_name,
        "duration_ps": info.duration_ps,
        "parts_ps": dict(parts.type_ps) if has_parts else {},
    }


if __name__ == "__main__":
    main()
