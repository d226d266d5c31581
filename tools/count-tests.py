#!/usr/bin/env python3
"""Reads the events of go test -json.

    tools/count-tests.py FILE               prints "passed failed skipped"
    tools/count-tests.py --failed FILE      prints the tests that count as failed, each with its first messages
    tools/count-tests.py --slowest N FILE…  prints the N tests that took longest, with their seconds
    tools/count-tests.py --follow FILE      copies the events from stdin to FILE; prints a line for each package that
                                            ends, and what a test or package printed that fails

A test with subtests counts through them, and by itself only if it failed and
none of them did. A package that fails outside its tests (it does not build,
panics, leaks a goroutine, exceeds its time limit) counts as one failure.
"""

import collections
import json
import re
import sys

# The messages printed of a failed test, and the characters of each.
MESSAGES = 6
WIDTH = 300
# The lines printed of the output of a test that fails.
LINES = 200


def events(lines):
    """Yields the events that name a package; other lines are what a test printed around the stream."""
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("Package") is not None:
            yield event


def read(lines):
    """Returns the results {package: {test: result}} and the messages {(package, test): [line]}; the test "" is the package."""
    results = collections.defaultdict(dict)
    messages = collections.defaultdict(list)
    for event in events(lines):
        action, package = event.get("Action"), event["Package"]
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


def slowest(n, lines):
    """Returns the n top-level tests that took longest, as (seconds, package, test)."""
    took = []
    for event in events(lines):
        test = event.get("Test", "")
        if event.get("Action") in ("pass", "fail") and test and "/" not in test:
            took.append((event.get("Elapsed", 0), event["Package"], test))
    return sorted(took, reverse=True)[:n]


def follow(lines, copy, out):
    """Copies lines to copy and prints the end of each package, with the output of what failed."""
    output = collections.defaultdict(list)
    for line in lines:
        copy.write(line)
        if '"build-output"' in line:
            out.write(json.loads(line).get("Output", ""))
        for event in events([line]):
            action, package, test = event.get("Action"), event["Package"], event.get("Test", "")
            if action == "output":
                output[package, test].append(event.get("Output", ""))
            elif action in ("pass", "fail", "skip"):
                printed = output.pop((package, test), [])
                if action == "fail":
                    out.write("".join(printed[-LINES:]))
                if not test:
                    word = {"pass": "ok  ", "fail": "FAIL", "skip": "none"}[action]
                    out.write(f"{word} {package} ({event.get('Elapsed', 0):.1f} s)\n")
                    out.flush()


def main(arguments):
    """Runs the command of the arguments, as in the module's documentation."""
    if arguments[0] == "--follow":
        with open(arguments[1], "w", encoding="utf-8") as copy:
            follow(sys.stdin, copy, sys.stdout)
        return
    if arguments[0] == "--slowest":
        lines = []
        for name in arguments[2:]:
            with open(name, encoding="utf-8", errors="replace") as file:
                lines.extend(file)
        for seconds, package, test in slowest(int(arguments[1]), lines):
            print(f"{seconds:7.1f}  {package}  {test}")
        return
    with open(arguments[-1], encoding="utf-8", errors="replace") as file:
        results, messages = read(file)
    total, failures = count(results)
    if arguments[0] == "--failed":
        for package, test in failures:
            print(f"failed: {package} {test}")
            for line in messages[package, test][:MESSAGES]:
                print(f"        {line}")
    else:
        print(total["pass"], total["fail"], total["skip"])


if __name__ == "__main__":
    sys.stdin.reconfigure(errors="replace")
    main(sys.argv[1:])
