# Prints each failure, and exits with 1 if there is one.
failed=0
expect() { # COUNT CENTS WANT
	got=$(sh price.sh "$1" "$2")
	[ "$got" = "$3" ] || { echo "FAIL: $1 pieces at $2 cost $got, want $3"; failed=1; }
}
expect 1 50 50
expect 9 50 450
expect 10 50 450
expect 20 50 900
[ $failed = 1 ] || echo "ok"
exit $failed
