#!/usr/bin/env bash
# Writes the report in $TFDOCTOR_OUT as a comment on the pull request, in place of the one it wrote before.
set -euo pipefail

LIMIT=65000 # GitHub refuses comments of more than 65,536 characters

body=$(mktemp)
trap 'rm -f "$body"' EXIT
"$(dirname "${BASH_SOURCE[0]}")/summary.sh" > "$body"
if (($(wc -m < "$body") > LIMIT)); then
  cp "$TFDOCTOR_OUT/report.md" "$body"
fi

MARKER=$(grep --only-matching --max-count=1 '<!-- tfdoctor-report [^>]*-->' "$TFDOCTOR_OUT/report.md")
export MARKER
comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
# shellcheck disable=SC2016  # $ENV is jq's
earlier=$(gh api --paginate "$comments" --jq '.[] | select(.body | contains($ENV.MARKER)) | .id' | head -n 1)
if [[ -n "$earlier" ]]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$earlier" --field "body=@$body"
else
  gh api --silent --method POST "$comments" --field "body=@$body"
fi
