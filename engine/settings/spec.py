"""What a setting is: a field of a dataclass whose metadata is its documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from . import parsing

SPEC = "spec"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spec:
    """What one setting means, how it is read and what is a valid value."""

    doc: str
    expected: str
    parse: parsing.Parser
    plain: bool = False
    fallbacks: tuple[str, ...] = ()
    unset: str = ""
    """What holds when nothing is given, where the default does not tell by itself."""
    secret: bool = False
    """Never shown, only that there is one."""


def setting(
    default: T,
    parse: parsing.Parser,
    expected: str,
    doc: str,
    *,
    plain: bool = False,
    fallbacks: tuple[str, ...] = (),
    unset: str = "",
    secret: bool = False,
) -> T:
    """A field whose metadata is its documentation."""
    spec = Spec(doc, expected, parse, plain, fallbacks, unset, secret)
    return field(default=default, repr=not secret, metadata={SPEC: spec})
