#!/usr/bin/env bash
# Prints the comparison, if there is one, and the report in $TFDOCTOR_OUT as one Markdown text.
set -euo pipefail

for part in tfdoctor-diff.md report.md; do
  if [[ -e "$TFDOCTOR_OUT/$part" ]]; then
    cat "$TFDOCTOR_OUT/$part"
    echo
  fi
done
