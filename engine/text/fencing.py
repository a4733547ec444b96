"""Text as data for a language model: nothing in it ends our fence, or a turn of the conversation."""

from __future__ import annotations

import re

from engine.text.safe import visible

BYTES_A_TOKEN = 3
"""Of UTF-8; a little too few, so that a text is rather taken for longer than it is."""

_LOOKALIKE = re.compile(
    r"<(?=\s*/?\s*(?:passage|memory))"  # our fences
    r"|<(?=[|\uff5c])|(?<=[|\uff5c])>"  # <|im_start|> of many models
    r"|<(?=/?(?:s|bos|eos|pad|unk|think|tool_call|tool_response|start_of_turn|end_of_turn)>)"
    r"|<(?=<\s*/?\s*SYS)|(?<=SYS>)>"  # <<SYS>>
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])",
    re.IGNORECASE,
)
_BLUNT = {"<": "\u2039", ">": "\u203a", "[": "\u27e6"}


def blunted(text: str) -> str:
    """The text with controls made visible, and with nothing in it that ends a fence or a turn."""
    return _LOOKALIKE.sub(lambda found: _BLUNT[found[0]], visible(text))


def size(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def shortened(text: str, tokens: int) -> str:
    """As much of the beginning of a text as so many tokens hold, with a sign that it goes on."""
    room = max(tokens, 0) * BYTES_A_TOKEN
    kept = text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return f"{kept} …"
