"""What several commands take: paths that are made absolute at once, texts, and `--json`.

An empty one is an error everywhere: it comes of a variable that is not set, and neither "everything" nor
"the working folder" is what was meant then.
"""

from __future__ import annotations

from pathlib import Path

import click

from engine.settings.paths import expanded


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


def json_wanted(*, as_json: bool) -> bool:
    """Whether JSON is asked for: of the command itself, or of the group it belongs to."""
    parent = click.get_current_context().parent
    return as_json or bool(parent and parent.params.get("as_json"))


def provider_and_model(text: str) -> tuple[str, str | None]:
    """The two of PROVIDER[/MODEL]; None where the provider's own default is meant."""
    provider, _, model = text.partition("/")
    return provider, model or None
