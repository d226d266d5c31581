#!/usr/bin/env bash
# Fails for a file or folder at the root that root.txt does not name, and for a name of root.txt
# that the root lacks. Reads what git knows or would add, so build output does not count.
#
#   tools/root.sh [DIR]    DIR has its own tools/root.txt; without it, this repository
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
named=$(grep -v '^#' tools/root.txt | LC_ALL=C sort)
found=$(git ls-files --cached --others --exclude-standard | cut -d/ -f1 | LC_ALL=C sort -u)
failed=0
while read -r name; do
	[ -e "./$name" ] || continue # deleted, and not yet from the index
	echo "$name: not in tools/root.txt: delete it, move it to a folder, or name it there"
	failed=1
done < <(LC_ALL=C comm -13 <(echo "$named") <(echo "$found"))
while read -r name; do
	[ ! -e "./$name" ] || continue
	echo "tools/root.txt: $name: not found at the root: remove the name"
	failed=1
done <<<"$named"
exit $failed
