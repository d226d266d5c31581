"""Messages of the protocol from Python mappings."""

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from harnessmesh.errors import InvalidError

M = TypeVar("M", bound=Message)


def message(kind: type[M], field: str, value: M | Mapping[str, Any] | None) -> M | None:
    """Converts a mapping with the names of the proto's fields to a message; returns a message unchanged.

    Enum values are written as in agent files, such as "ask", or with their full names; durations as "1.5s".
    Raises InvalidError with the name of a field that does not fit, and with the values that an enum has.
    """
    if value is None or isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InvalidError(
            f"{field}: expected a mapping or a {kind.__name__}, not {type(value).__name__}", metadata={"field": field}
        )
    try:
        return ParseDict(_spelt(kind.DESCRIPTOR, field, value), kind())
    except InvalidError:
        raise
    except (ParseError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise InvalidError(f"{field}: {text}", metadata={"field": field}) from None


def _spelt(kind: Any, place: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces the short names of enum values in a mapping by their full names."""
    spelt = dict(value)
    for name, given in value.items():
        field = kind.fields_by_name.get(name) or kind.fields_by_camelcase_name.get(name)
        if field is None or field.type not in (FieldDescriptor.TYPE_ENUM, FieldDescriptor.TYPE_MESSAGE):
            continue
        at = f"{place}.{name}"
        if isinstance(given, (list, tuple)):
            spelt[name] = [_value(field, f"{at}[{i}]", each) for i, each in enumerate(given)]
        else:
            spelt[name] = _value(field, at, given)
    return spelt


def _value(field: Any, place: str, given: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_ENUM:
        return _full_name(field.enum_type, place, given) if isinstance(given, str) else given
    plain = field.message_type.GetOptions().map_entry or field.message_type.full_name.startswith("google.protobuf.")
    return _spelt(field.message_type, place, given) if isinstance(given, Mapping) and not plain else given


def _full_name(kind: Any, place: str, given: str) -> str:
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    for full in (given, prefix + given.upper().replace("-", "_")):
        if full in kind.values_by_name:
            return full
    known = ", ".join(v.name.removeprefix(prefix).lower() for v in kind.values if v.number != 0)
    raise InvalidError(f'{place}: "{given}": expected one of {known}', metadata={"field": place})
