#!/usr/bin/env bash
# Fuzzing, which go test does one function at a time.
#
#   tools/fuzz.sh seeds          every seed and every committed finding, once
#   tools/fuzz.sh FUZZTIME       searches for FUZZTIME (30s, 1000x) per function
set -euo pipefail
what=${1:?usage: tools/fuzz.sh seeds|FUZZTIME}
cd "$(dirname "$0")/.."
targets=$(tools/packages.sh Fuzz)
if [ -z "$targets" ]; then
	echo "no Fuzz functions"
	exit 0
fi

if [ "$what" = seeds ]; then
	# shellcheck disable=SC2046 # import paths hold no spaces
	exec go test -run '^Fuzz' $(cut -d' ' -f1 <<<"$targets" | sort -u)
fi
failed=0
while read -r package function; do
	echo "== $package $function"
	go test -run '^$' -fuzz "^$function\$" -fuzztime "$what" "$package" </dev/null || failed=1
done <<<"$targets"
exit $failed
