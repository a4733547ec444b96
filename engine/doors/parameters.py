"""What several commands take: paths that are made absolute at once, texts, whose memory, and `--json`.

An empty one is an error everywhere: it comes of a variable that is not set, and neither "everything" nor
"the working folder" is what was meant then.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.settings.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")


class AbsolutePath(click.Path):
    """A path with `~` expanded, made absolute before the work begins. Whether it exists, the engine says."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path that the text names."""
        if not str(value):
            self.fail(EMPTY, param, ctx)
        return expanded(Path(str(value))).absolute()


class Given(click.types.StringParamType):
    """A text that is not empty; with `blank` it may be blank, as a file's name may."""

    def __init__(self, *, blank: bool = False) -> None:
        self._blank = blank

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it was given."""
        text = str(super().convert(value, param, ctx))
        if not (text if self._blank else text.strip()):
            self.fail(EMPTY, param, ctx)
        return text


EMPTY = "it is empty. Give it a value or leave it out."
PATH = AbsolutePath()
PATH_AS_TYPED = Given(blank=True)
TEXT = Given()
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
CORE = click.option("--core", type=TEXT, metavar="SLUG", help="The core that is meant, else NOCTUARY_CORE.")
USER = click.option(
    "--user", type=TEXT, metavar="NAME", help="The end user who is meant, else NOCTUARY_USER."
)


def whose(command: F) -> F:
    """Give a command the options that say whose memory is meant."""
    return CORE(USER(command))


def words_or_input(words: Sequence[str]) -> str:
    """The words of the command line as one text; a single `-` stands for standard input.

    Raises:
        click.UsageError: there is nothing in them.
    """
    text = " ".join(words)
    if text == "-":
        text = read_input()
    if not text.strip():
        raise click.UsageError("The text is empty.", click.get_current_context())
    return text


def read_input() -> str:
    """All of standard input; what is not UTF-8 in it is replaced."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def json_wanted(*, as_json: bool) -> bool:
    """Whether JSON is asked for: of the command itself, or of the group it belongs to."""
    parent = click.get_current_context().parent
    return as_json or bool(parent and parent.params.get("as_json"))


def provider_and_model(text: str) -> tuple[str, str | None]:
    """The two of PROVIDER[/MODEL]; None where the provider's own default is meant."""
    provider, _, model = text.partition("/")
    return provider, model or None
