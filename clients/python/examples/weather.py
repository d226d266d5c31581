"""Give a run tools that run here, and come back after a crash.

    python examples/weather.py --model openai:gpt-5 "What do I pack for Bergen and for Sevilla?"
    python examples/weather.py --model script:$PWD/examples/weather.yaml --crash "What do I pack?"
    python examples/weather.py

The program keeps the run's id and the id of the last event that it has shown in a file. With
--crash it kills itself in the middle of its second call, like a power failure. Started again, it
attaches to the run and continues after that event: each event is shown once, and the call that was
open is made again. The run itself only waited.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Literal

from harnessmesh import Client, Event, HarnessError, Result, Tool, ToolFailed, pb, tool

WEATHER = {"Bergen": "rain", "Sevilla": "sun"}


def make_tool(crash: bool) -> Tool:
    calls = 0

    @tool(reads=True)
    async def get_weather(city: str, call_id: str, days: int = 1, unit: Literal["C", "F"] = "C") -> object:
        """The weather in a city on the next days. Knows Bergen and Sevilla."""
        nonlocal calls
        calls += 1
        if crash and calls == 2:
            print(f"…crash in the middle of {call_id}", file=sys.stderr)
            os._exit(70)
        if city not in WEATHER:
            raise ToolFailed(f"no weather is known of {city}: ask for {' or '.join(WEATHER)}")
        return {"city": city, "days": days, "sky": WEATHER[city], "temperature": 12 if unit == "C" else 54}

    return get_weather


async def main() -> int:
    parser = argparse.ArgumentParser(description="Give a run tools that run here, and come back after a crash.")
    parser.add_argument("goal", nargs="?", help="what to do; without it the run in the file is gone on with")
    parser.add_argument("--server", default="127.0.0.1:7447", metavar="HOST:PORT")
    parser.add_argument("--model", help="PROVIDER:NAME")
    parser.add_argument("--state", type=Path, default=Path("weather.json"), help="where the place in the run is kept")
    parser.add_argument("--crash", action="store_true", help="die in the middle of the second call")
    given = parser.parse_args()
    if not given.goal and not given.state.exists():
        parser.error(f"say what to do: there is no run to go on with in {given.state}")
    try:
        return await work(given)
    except HarnessError as error:
        print(f"weather: {error}", file=sys.stderr)
        return 1


async def work(given: argparse.Namespace) -> int:
    tools = [make_tool(given.crash)]
    async with Client.connect(given.server) as client:
        if given.goal:
            run, after = await client.start(given.goal, model=given.model, tools=tools), "0-0"
        else:
            kept = json.loads(given.state.read_text())
            run, after = await client.attach(kept["run"], tools=tools), kept["after"]
            print(f"going on with {run.id} behind {after}", file=sys.stderr)
        keep(given.state, run.id, after)
        async for update in run.events(after, deltas=False):
            match update:
                case Event(id=event, token=token, name=name, data=data):
                    print(event, name, told(data), flush=True)
                    keep(given.state, run.id, token)  # after it was shown: a kept token's events were seen
                case Result() as result:
                    print(result.status.value, result.summary or result.message)
                    return 0 if result.accepted else 1
    return 1


def told(data: object) -> str:
    match data:
        case pb.ToolCalled(tool=name, call_id=call) | pb.ToolResult(tool=name, call_id=call):
            return f"{name} {call}"
    return ""


def keep(file: Path, run: str, after: str) -> None:
    """Replaces the file in one go, so that a crash leaves the old one or the new one."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"run": run, "after": after}))
    os.replace(new, file)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
