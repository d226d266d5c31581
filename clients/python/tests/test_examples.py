"""The examples, each run as a person would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from conftest import EXAMPLES, Server


def run(*arguments: str, cwd: Path, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(EXAMPLES / arguments[0]), *arguments[1:]]
    source = str(EXAMPLES.parent / "src")
    return subprocess.run(
        command,
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": source, "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]},
    )


def test_follow_shows_the_work_and_asks_for_approvals(
    server: Server, example: Callable[[str], str], workspace: Path
) -> None:
    arguments = ["--server", server.address, "--model", example("notes.yaml"), "Count the lines"]
    yes = run("follow.py", *arguments, cwd=workspace, typed="y\n")
    assert yes.returncode == 0, yes.stderr
    assert 'Run run_command {"command": "wc -l < notes.md"}? (it runs commands)' in yes.stdout
    assert "I write a note first." in yes.stdout
    assert "  ✓ run_command" in yes.stdout
    assert "Two lines." in yes.stdout
    assert "DONE · agent_done" in yes.stdout
    no = run("follow.py", *arguments, cwd=workspace, typed="not now\n")
    assert no.returncode == 0, no.stderr
    assert "Then I count them myself." in no.stdout


def test_follow_leaves_a_run_that_nobody_answers_and_comes_back(
    server: Server, example: Callable[[str], str], workspace: Path
) -> None:
    arguments = ["--server", server.address, "--model", example("notes.yaml"), "Count the lines"]
    left = run("follow.py", *arguments, cwd=workspace)
    assert left.returncode == 4
    name = left.stderr.split()[1]
    assert f"{name} waits" in left.stderr
    back = run("follow.py", "--server", server.address, "--attach", name, cwd=workspace, typed="a\n")
    assert back.returncode == 0, back.stderr
    assert "I write a note first." in back.stdout
    assert "DONE · agent_done" in back.stdout


def test_weather_goes_on_after_a_crash_without_loss_or_repeat(
    server: Server, example: Callable[[str], str], workspace: Path
) -> None:
    model = example("weather.yaml")
    crashed = run(
        "weather.py", "--server", server.address, "--model", model, "--crash", "What do I pack?", cwd=workspace
    )
    assert crashed.returncode == 70
    assert "…crash in the middle of call_1_" in crashed.stderr
    kept = json.loads((workspace / "weather.json").read_text())
    again = run("weather.py", "--server", server.address, cwd=workspace)
    assert again.returncode == 0, again.stderr
    assert f"going on with {kept['run']} behind {kept['after']}" in again.stderr
    assert again.stdout.splitlines()[-1] == "DONE An umbrella for Bergen, a hat for Sevilla."

    command = [server.binary, "watch", kept["run"], "--server", server.address, "--output", "jsonl", "--no-stream"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stored = [f"{e['id']} {e['type']}" for e in map(json.loads, printed.splitlines()) if e["type"] != "result"]
    lines = crashed.stdout.splitlines() + again.stdout.splitlines()[:-1]
    assert [" ".join(line.split()[:2]) for line in lines] == stored


def test_examples_say_in_one_line_what_is_wrong(server: Server, workspace: Path) -> None:
    wrong = run("follow.py", "--server", server.address, "--attach", "nobody", cwd=workspace)
    assert (wrong.returncode, wrong.stderr) == (1, "follow: run default/nobody not found\n")
    nothing = run("weather.py", "--server", server.address, cwd=workspace)
    assert nothing.returncode == 2
    assert "say what to do: there is no run to go on with in weather.json" in nothing.stderr
