#!/usr/bin/env bash
# Fails if proto/ breaks readers of what an earlier commit wrote or sent.
#
# Compared with the commit AGAINST, if given; else with the newest tag; else with
# the newest commit that can differ: HEAD while proto/ has uncommitted changes, and
# its parent otherwise. Without a commit to compare with it passes, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."

pass() { echo "breaking: $1: nothing to compare with"; exit 0; }

git rev-parse --git-dir >/dev/null || pass "no usable git repository"
if [ -n "${AGAINST-}" ]; then
	against=$(git rev-parse --verify --quiet "$AGAINST^{commit}") || { echo "breaking: AGAINST=$AGAINST is no commit here" >&2; exit 1; }
	name=$AGAINST
else
	git rev-parse --verify --quiet HEAD >/dev/null || pass "no commits yet"
	if name=$(git describe --tags --abbrev=0 2>/dev/null); then :
	elif [ -n "$(git status --porcelain -- proto)" ]; then name=HEAD
	else name=HEAD~1
	fi
	against=$(git rev-parse --verify --quiet "$name^{commit}") || pass "$name is not in this clone"
fi
mapfile -t files < <(git ls-tree -r --name-only "$against" | grep -E '\.proto$|^buf\.(yaml|lock)$')
[ ${#files[@]} -gt 0 ] || pass "$name has no proto files"

old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$against" -- "${files[@]}" | tar -x -C "$old"
bin=$(tools/install.sh tools)
"$bin/buf" breaking --against "$old"
echo "breaking: compatible with $name (${against:0:12})"
