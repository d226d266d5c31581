"""Functions as tools."""

from typing import Any, Literal

import pytest

from harnessmesh import Tool, ToolFailed, pb, tool
from harnessmesh.serving import run_tool
from harnessmesh.tools import ToolFunction, by_name


def test_a_functions_annotations_become_the_schema_of_its_arguments() -> None:
    @tool
    def book(
        city: str,
        call_id: str,
        nights: int = 1,
        kind: Literal["room", "flat"] = "room",
        notes: list[str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        """Books a place to sleep."""

    assert (book.name, book.description, book.takes_call_id) == ("book", "Books a place to sleep.", True)
    assert book.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "kind": {"enum": ["room", "flat"]},
            "notes": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "more": {"anyOf": [{"type": "object", "additionalProperties": {}}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert book.spec().origin == pb.TOOL_ORIGIN_CLIENT


def test_tools_can_be_named_and_described_by_hand() -> None:
    schema = {"type": "object", "properties": {"anything": {}}}

    @tool(name="other", description="Does it.", parameters=schema, writes=True)
    def function(**anything: object) -> None: ...

    assert (function.name, function.description, function.parameters) == ("other", "Does it.", schema)
    assert function.spec().annotations.writes
    named: dict[str, Tool | ToolFunction] = {"a": lambda: None, "other": function}
    assert list(by_name(named)) == ["a", "other"]


def test_what_cannot_be_a_tool_is_refused_with_its_place() -> None:
    def bare(city) -> None: ...  # type: ignore[no-untyped-def]
    def strange(when: complex) -> None: ...
    def many(*cities: str) -> None: ...

    for function, text in ((bare, "parameter city has no annotation"), (strange, "complex"), (many, "passed by name")):
        with pytest.raises(TypeError, match=text):
            tool(function)
    with pytest.raises(TypeError, match="duplicate name same"):
        by_name([tool(name="same")(lambda: None), tool(name="same")(lambda: None)])
    with pytest.raises(TypeError, match="the tool b is listed as a"):
        by_name({"a": tool(name="b")(lambda: None)})


async def test_a_call_gives_text_json_or_an_error() -> None:
    def make(function: Any) -> Tool:
        return tool(name="t", parameters={})(function)

    async def slow(city: str) -> str:
        return f"in {city}"

    def fails() -> None:
        raise ToolFailed("no such city")

    def breaks() -> None:
        raise KeyError("city")

    def echo(call_id: str) -> dict[str, str]:
        return {"call": call_id}

    assert await run_tool(make(slow), "c1", {"city": "Oslo"}) == ("in Oslo", False)
    assert await run_tool(make(echo), "c1", {}) == ('{"call": "c1"}', False)
    assert await run_tool(make(fails), "c1", {}) == ("no such city", True)
    assert await run_tool(make(breaks), "c1", {}) == ("KeyError: 'city'", True)
    text, failed = await run_tool(make(slow), "c1", "no object")
    assert failed and "no JSON object" in text
