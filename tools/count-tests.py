#!/usr/bin/env python3
"""Counts the tests in a file that gotestsum --jsonfile wrote; prints "passed failed skipped".

    tools/count-tests.py FILE

A test with subtests counts through them, and by itself only if it failed and
none of them did. A package that fails outside its tests (it does not build,
panics, leaks a goroutine, exceeds its time limit) counts as one failure.
"""

import collections
import json
import sys


def count(lines):
    results = collections.defaultdict(dict)  # package: test: its result; the test "" is the package
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # what a test printed around the stream
        action, package = event.get("Action"), event.get("Package")
        if package is None:
            continue
        test = event.get("Test", "")
        if action == "run":
            results[package].setdefault(test, "fail")  # unless a result follows
        elif action in ("pass", "fail", "skip"):
            results[package][test] = action
    total = collections.Counter()
    for tests in results.values():
        package = tests.pop("", "fail")
        parents = {name[:i] for name in tests for i, c in enumerate(name) if c == "/"}
        failed = [name for name, result in tests.items() if result == "fail"]
        for name, result in tests.items():
            below = name in parents
            if not below or result == "fail" and not any(f.startswith(name + "/") for f in failed):
                total[result] += 1
        if package == "fail" and not failed:
            total["fail"] += 1
    return total


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        counted = count(file)
    print(counted["pass"], counted["fail"], counted["skip"])
