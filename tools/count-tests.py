#!/usr/bin/env python3
"""Counts the tests in a file that gotestsum --jsonfile wrote; prints "passed failed skipped".

    tools/count-tests.py FILE
    tools/count-tests.py --failed FILE

A test with subtests counts through them, and by itself only if it failed and
none of them did. A package that fails outside its tests (it does not build,
panics, leaks a goroutine, exceeds its time limit) counts as one failure.

With --failed it prints the tests that count as failed, each with its first messages.
"""

import collections
import json
import re
import sys

# The messages printed of a failed test, and the characters of each.
MESSAGES = 6
WIDTH = 300


def read(lines):
    """Returns the results {package: {test: result}} and the messages {(package, test): [line]}; the test "" is the package."""
    results = collections.defaultdict(dict)
    messages = collections.defaultdict(list)
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
        elif action == "output" and re.match(r"\s*\w+\.go:\d+: |panic: |fatal error: ", event.get("Output", "")):
            messages[package, test].append(event["Output"].strip()[:WIDTH])
    return results, messages


def count(results):
    """Returns the numbers by result, and the (package, test) that count as failed."""
    total, failures = collections.Counter(), []
    for package, tests in results.items():
        outside = tests.pop("", "fail")
        parents = {name[:i] for name in tests for i, c in enumerate(name) if c == "/"}
        failed = [name for name, result in tests.items() if result == "fail"]
        for name, result in tests.items():
            below = name in parents
            if not below or result == "fail" and not any(f.startswith(name + "/") for f in failed):
                total[result] += 1
                if result == "fail":
                    failures.append((package, name))
        if outside == "fail" and not failed:
            total["fail"] += 1
            failures.append((package, ""))
    return total, failures


if __name__ == "__main__":
    with open(sys.argv[-1], encoding="utf-8", errors="replace") as file:
        results, messages = read(file)
    total, failures = count(results)
    if sys.argv[1] == "--failed":
        for package, test in failures:
            print(f"failed: {package} {test}")
            for line in messages[package, test][:MESSAGES]:
                print(f"        {line}")
    else:
        print(total["pass"], total["fail"], total["skip"])
