"""A tool service in Python: notes that agents add and read.

    python notes.py --listen 127.0.0.1:9000 --file notes.txt
    harness run --tool-service notes=127.0.0.1:9000 "Note that the build is green."

Its keys outlive the process: a note whose answer was lost is not added a second time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from harnessmesh import tool
from harnessmesh.toolservice import serve, show


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--listen", default="127.0.0.1:9000", metavar="HOST:PORT")
    flags.add_argument("--file", default="notes.txt", type=Path, metavar="FILE")
    args = flags.parse_args()

    @tool
    async def add_note(text: str) -> str:
        """Adds a note."""
        show(f"adding {text!r}\n")
        with args.file.open("a") as notes:
            notes.write(text + "\n")
        return "noted"

    @tool(reads=True, parallel_safe=True)
    def read_notes() -> list[str]:
        """Returns all notes."""
        return args.file.read_text().splitlines() if args.file.exists() else []

    asyncio.run(
        serve(
            [add_note, read_notes],
            args.listen,
            memory=args.file.with_suffix(".calls"),
            ready=lambda address: print(json.dumps({"listening": address}), flush=True),
        )
    )


if __name__ == "__main__":
    main()
