"""JSON out of what a model wrote: found where it stands, and held to its schema before anybody uses it.

Seen in models' answers: a fenced answer, a fence inside a JSON string, prose around, a bare list instead of
the object, wrong key names, nothing at all, an answer cut off. What is not wholly valid is refused, never
repaired.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_FAULT = 300

_FENCE = ("```", "~~~")


def read(text: str, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the schema says what
    """The value that a model's answer holds.

    Raises:
        ValueError: there is none, or the schema does not hold it good; the message tells the model why.
    """
    import jsonschema

    found = _value(text)
    try:
        jsonschema.validate(found, schema)
    except jsonschema.ValidationError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        where = f"at {place!r}: " if place else ""
        raise ValueError(f"{where}{error.message}"[:LONGEST_FAULT]) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return found


def guidance(fault: str) -> str:
    """What a model is told whose answer was not valid."""
    return (
        f"That was not valid: {fault}.\nAnswer again with nothing but JSON that follows the schema, whole, "
        "without a fence and without a word before or after it."
    )


def _value(text: str) -> Any:  # noqa: ANN401
    if not text.strip():
        raise ValueError("the answer was empty")
    fault: ValueError | None = None
    for candidate in _candidates(text):
        try:
            return json.loads(
                candidate, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number
            )
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        except ValueError as error:
            fault = fault or error
    raise ValueError(f"it is not JSON: {fault}"[:LONGEST_FAULT])


def _candidates(text: str) -> Iterator[str]:
    """Where the JSON may stand, the likeliest first: the whole, a fence, from the first bracket on."""
    yield text
    yield from _fenced(text)
    first = min((at for sign in "{[" if (at := text.find(sign)) >= 0), default=-1)
    last = max(text.rfind("}"), text.rfind("]"))
    if 0 <= first < last:
        yield text[first : last + 1]


def _fenced(text: str) -> Iterator[str]:
    """What stands between two lines that are fences; line by line, since a model may write thousands."""
    begun: list[str] | None = None
    for each in text.split("\n"):
        if each.lstrip().startswith(_FENCE):
            if begun is not None:
                yield "\n".join(begun)
            begun = [] if begun is None else None
        elif begun is not None:
            begun.append(each)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands in an object twice")
    return found


def _number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:20]} is no JSON: too large a number")
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
