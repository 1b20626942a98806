#!/usr/bin/env bash
# Runs all of .ci/run on a commit in a fresh clone, as it runs before a change lands; main moves forward to the commit if nothing failed.
#   scripts/verify.sh [COMMIT]    HEAD by default; what is not committed is not part of it
# PORTICO_VERIFY=FOLDER is where it clones (by default below the system's temporary folder). Data beside the checkout is found there too.
set -euo pipefail
top=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
cd "$top"
commit=$(git rev-parse -q --verify "${1:-HEAD}^{commit}") || { echo "./dev verify: there is no commit ${1:-HEAD}" >&2; exit 2; }
folder=${PORTICO_VERIFY:-${TMPDIR:-/tmp}/portico-clone}
[ -z "$(git status --porcelain)" ] || echo "[dev] what is not committed is not part of this"
mkdir -p "$folder"
exec 9>"$folder/lock"
flock -n 9 || { echo "./dev verify: another run is under way in $folder" >&2; exit 2; }
rm -rf "$folder/portico"
git clone -q --no-tags "$top" "$folder/portico"
git -C "$folder/portico" checkout -q -B verify "$commit"
[ ! -d "$top/../shared" ] || ln -sfn "$(realpath "$top/../shared")" "$folder/shared"

echo "[dev] $(git log -1 --format='%h %s' "$commit"): .ci/run in $folder/portico, log in $folder/ci.log"
status=0
(
  cd "$folder/portico"
  unset ${!GTEST_@} ${!PORTICO_@} ${!CMAKE_@} PYTEST_ADDOPTS CC CXX CFLAGS CXXFLAGS
  CI=true bash .ci/run </dev/null >"$folder/ci.log" 2>&1 9>&-
) || status=$?
grep -E '^=== .*: (status|skipped)' "$folder/ci.log" || true
tail -40 "$folder/ci.log" | sed -n '/^--- what failed/,$p'
if [ $status != 0 ] || grep -qE '^=== .*: skipped' "$folder/ci.log"; then
  echo "[dev] not verified: $(tail -1 "$folder/ci.log")"
  exit 1
fi
echo "[dev] verified: $(tail -1 "$folder/ci.log")"
rm -rf "$folder/portico"
main=$(git rev-parse -q --verify refs/heads/main) || exit 0
if [ "$main" = "$commit" ]; then exit 0; fi
if ! git merge-base --is-ancestor "$main" "$commit"; then
  echo "[dev] main has commits that this one lacks; it stays where it is"
elif [ "$(git symbolic-ref -q --short HEAD || true)" = main ]; then
  git merge -q --ff-only "$commit"
else
  git branch -q -f main "$commit"
fi
