#!/usr/bin/env bash
# Finds the run to compare with: records $BASE_SHA here, takes the report of $BASE_BRANCH, or uses the path given.
# Writes `path` to $GITHUB_OUTPUT; without a base to compare with, a notice instead.
set -euo pipefail

none() { echo "::notice title=tfdoctor::$1"; exit 0; }
found() { echo "path=$1" >> "$GITHUB_OUTPUT"; }

record() {
  local tree="$TFDOCTOR_BASE_OUT-tree" prefix
  [[ -n "$BASE_SHA" ]] || none "This event has no base commit: nothing is compared."
  git worktree remove --force "$tree" 2>/dev/null || git worktree prune
  git cat-file -e "$BASE_SHA^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE_SHA" \
    || none "The base commit cannot be fetched: nothing is compared."
  git worktree add --quiet --force --detach "$tree" "$BASE_SHA"
  prefix=$(git rev-parse --show-prefix)
  eval "words=($TFDOCTOR_COMMAND)"
  (cd "$tree/$prefix" && tfdoctor profile --quiet --out "$TFDOCTOR_BASE_OUT" --steps "$TFDOCTOR_STEPS" --no-report "${words[@]}") \
    || none "The base commit does not run: nothing is compared."
  found "$TFDOCTOR_BASE_OUT"
}

artifact() {
  local run
  run=$(gh run list --branch "$BASE_BRANCH" --workflow "$GITHUB_WORKFLOW" --status success --limit 1 \
    --json databaseId --jq '.[0].databaseId // empty')
  [[ -n "$run" ]] || none "No successful run on $BASE_BRANCH yet: nothing is compared."
  gh run download "$run" --name "$TFDOCTOR_NAME" --dir "$TFDOCTOR_BASE_OUT" \
    || none "The last run on $BASE_BRANCH has no report: nothing is compared."
  found "$TFDOCTOR_BASE_OUT/report.json"
}

rm -rf "$TFDOCTOR_BASE_OUT"
case "$TFDOCTOR_BASE" in
  record) record ;;
  artifact) artifact ;;
  *) found "$(realpath -m "$TFDOCTOR_BASE")" ;;
esac
