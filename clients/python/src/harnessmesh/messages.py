"""Messages of the protocol from Python mappings."""

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from harnessmesh.errors import InvalidError

M = TypeVar("M", bound=Message)


def message(kind: type[M], field: str, value: M | Mapping[str, Any] | None) -> M | None:
    """Converts a mapping with the names of the proto's fields to a message; returns a message unchanged.

    Enum values are written with their full names, durations as "1.5s". Raises InvalidError with
    the name of a field that does not fit.
    """
    if value is None or isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InvalidError(
            f"{field}: expected a mapping or a {kind.__name__}, not {type(value).__name__}", metadata={"field": field}
        )
    try:
        return ParseDict(dict(value), kind())
    except (ParseError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise InvalidError(f"{field}: {text}", metadata={"field": field}) from None
