"""Moves what protoc wrote into the package harnessmesh.gen, for generate.sh.

protoc's Python plugins import by the path of the proto file (`from harness.v1 import …`) and so
take the top-level name `harness` for themselves. Here these imports are made those of the package.
Files for services that a proto file does not have are left out, and `pb` gathers all messages
under one name.

    python arrange.py FOLDER    reads FOLDER/harness, writes FOLDER/gen
"""

import re
import sys
from pathlib import Path

IMPORT = re.compile(r"^from harness\.v1 import ", re.MULTILINE)
NOTE = '"""Generated from proto/ by clients/python/generate.sh. Do not edit."""\n'


def arrange(folder: Path) -> None:
    source = folder / "harness" / "v1"
    target = folder / "gen" / "harness" / "v1"
    target.mkdir(parents=True)
    for package in (target, target.parent, target.parent.parent):
        (package / "__init__.py").write_text(NOTE, encoding="utf-8")
    modules = []
    for file in sorted(source.iterdir()):
        text = file.read_text(encoding="utf-8")
        if "_pb2_grpc" in file.name:
            service = file.with_name(file.name.split(".")[0] + ".py")
            if "class " not in service.read_text(encoding="utf-8"):
                continue
        elif file.suffix == ".py":
            modules.append(file.stem)
        (target / file.name).write_text(IMPORT.sub("from harnessmesh.gen.harness.v1 import ", text), encoding="utf-8")
    lines = [f"from harnessmesh.gen.harness.v1.{module} import *\n" for module in modules]
    (folder / "gen" / "pb.py").write_text(NOTE + "\n" + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    arrange(Path(sys.argv[1]))
