#!/usr/bin/env bash
# Ends the job with the exit code of the profiled run, or else with that of the comparison.
set -euo pipefail

if [[ "${PROFILE_CODE:-1}" != 0 ]]; then
  exit "${PROFILE_CODE:-1}"
fi
exit "${DIFF_CODE:-0}"
