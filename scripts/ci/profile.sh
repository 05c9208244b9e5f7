#!/usr/bin/env bash
# Profiles $TFDOCTOR_COMMAND into $TFDOCTOR_OUT. A failure does not end the job here: the reports are uploaded first.
set -euo pipefail

eval "words=($TFDOCTOR_COMMAND)" # quotes in the command mean what they mean in a shell
rm -rf "$TFDOCTOR_OUT"
code=0
tfdoctor profile --out "$TFDOCTOR_OUT" --steps "$TFDOCTOR_STEPS" --fail-on "${TFDOCTOR_FAIL_ON:-never}" \
  --format html,json,md,sarif,github "${words[@]}" || code=$?

# 4 may be the script's own exit code, which the report has.
if [[ $code == 4 ]] && python -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["subject"]["exit_code"])' \
  "$TFDOCTOR_OUT/report.json"; then
  echo "::warning title=tfdoctor::A budget is undecided: its limit lies within the measured interval."
  code=0
fi

has() { if [[ -e "$TFDOCTOR_OUT/$1" ]]; then echo true; else echo false; fi; }
{
  echo "code=$code"
  echo "folder=$TFDOCTOR_OUT"
  echo "traced=$(has plugins)"
  echo "reported=$(has report.json)"
} >> "$GITHUB_OUTPUT"
