#!/usr/bin/env bash
# Compares $TFDOCTOR_BASE_PATH with $TFDOCTOR_OUT. Runs of unlike machines are compared by shares, without the gate.
set -euo pipefail

compare() { tfdoctor diff "$TFDOCTOR_BASE_PATH" "$TFDOCTOR_OUT" --format html,md,json --out "$TFDOCTOR_OUT" "$@"; }
gate=(${TFDOCTOR_MAX_REGRESSION:+--max-regression "$TFDOCTOR_MAX_REGRESSION"})

code=0
compare "${gate[@]}" || code=$?
if [[ $code == 2 ]]; then
  # If nothing but the machine or the program is wrong, --anyway works.
  anyway=0
  compare "${gate[@]}" --anyway > /dev/null || anyway=$?
  if [[ $anyway != 2 ]] && compare --shares; then
    echo "::warning title=tfdoctor::The runs are not comparable in time: the regression gate was not checked."
    code=0
  fi
fi
if [[ $code == 3 ]]; then
  echo "::error title=tfdoctor::The training step is slower than --max-regression $TFDOCTOR_MAX_REGRESSION allows."
fi
if [[ $code == 4 ]]; then
  echo "::warning title=tfdoctor::It is undecided whether the training step is slower than --max-regression $TFDOCTOR_MAX_REGRESSION allows."
  code=0
fi
echo "code=$code" >> "$GITHUB_OUTPUT"
