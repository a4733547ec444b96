"""The embedder that Ollama runs: what it promises of vectors, and of servers that fail in every way."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio

from engine.errors import ModelError
from engine.models.embedding import calibration, ollama_server, open_embedder
from engine.models.embedding import ollama as embedding_ollama
from engine.models.embedding.ollama import DEFAULT_MODEL, OllamaEmbedder, installed, pull
from engine.settings import Settings
from tests.scripted_ollama import DIGEST, DIMENSION, Answer, Asked, ScriptedOllama, vector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MODEL = "all-minilm"
CALIBRATION = len(calibration.PAIRS)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ScriptedOllama]:
    async with ScriptedOllama() as opened:
        yield opened


@pytest_asyncio.fixture
async def embedder(server: ScriptedOllama) -> AsyncIterator[OllamaEmbedder]:
    opened = OllamaEmbedder(server.url, MODEL)
    yield opened
    await opened.close()


def unit(text: str) -> np.ndarray:
    values = np.array(vector(text))
    return values / np.linalg.norm(values)


async def test_ready_tells_what_the_server_knows(server: ScriptedOllama, embedder: OllamaEmbedder) -> None:
    assert (embedder.provider, embedder.model, embedder.token_limit) == ("ollama", MODEL, 512)
    for unknown in ("model_id", "dimension", "default_distance"):
        with pytest.raises(ModelError, match="was not reached"):
            getattr(embedder, unknown)
    server.models["all-minilm:latest"] = {
        "model_info": {"bert.context_length": 512, "bert.embedding_length": DIMENSION},
        "parameters": 'num_ctx                        256\nstop  "x"',
        "capabilities": ["embedding"],
    }
    await embedder.ready()
    assert embedder.model_id == f"ollama:all-minilm@{DIGEST[:12]}"
    assert (embedder.dimension, embedder.token_limit) == (DIMENSION, 256)
    assert 0 < embedder.default_distance < 2


async def test_ready_is_cheap_once_it_succeeded(server: ScriptedOllama, embedder: OllamaEmbedder) -> None:
    await embedder.ready()
    asked = len(server.asked)
    await embedder.ready()
    assert len(server.asked) == asked


async def test_the_full_name_means_the_same_model(server: ScriptedOllama) -> None:
    embedder = OllamaEmbedder(server.url, "All-MiniLM:latest")
    await embedder.ready()
    assert embedder.model_id == f"ollama:all-minilm@{DIGEST[:12]}"
    await embedder.close()


async def test_a_measured_distance_is_not_measured_again(server: ScriptedOllama) -> None:
    known = {f"ollama:all-minilm@{DIGEST[:12]}": 0.5}
    embedder = OllamaEmbedder(server.url, MODEL, distances=known)
    await embedder.ready()
    assert embedder.default_distance == 0.5
    assert server.embedded == [["dimension"]]
    await embedder.close()


async def test_the_settings_open_it_with_knowmans_model() -> None:
    embedder = open_embedder(Settings(embeddings_provider="ollama"))
    assert (embedder.provider, embedder.model) == ("ollama", DEFAULT_MODEL)
    await embedder.close()
    await embedder.close()


async def test_vectors_are_the_models_at_length_one(embedder: OllamaEmbedder) -> None:
    vectors = await embedder.passages(["one", "two"])
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(np.vstack([unit("one"), unit("two")]), abs=1e-6)
    assert await embedder.query("one") == pytest.approx(unit("one"), abs=1e-6)
    assert (await embedder.passages([])).shape == (0, DIMENSION)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("nomic-embed-text", "search_query: x", "search_document: x"),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: x", "x"),
        ("snowflake-arctic-embed:22m", "Represent this sentence for searching relevant passages: x", "x"),
        ("snowflake-arctic-embed2", "query: x", "x"),
        ("someone/multilingual-e5-small:q4", "query: x", "passage: x"),
        ("embeddinggemma:300m", "task: search result | query: x", "title: none | text: x"),
        (
            DEFAULT_MODEL,
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:x",
            "x",
        ),
        ("bge-m3", "x", "x"),
        ("all-minilm", "x", "x"),
    ],
)
async def test_a_family_is_told_what_it_was_trained_to_hear(
    server: ScriptedOllama, model: str, query: str, passage: str
) -> None:
    server.models = {model if ":" in model else f"{model}:latest": {}}
    embedder = OllamaEmbedder(server.url, model)
    await embedder.query("x")
    await embedder.passages(["x"])
    assert server.embedded[-2:] == [[query], [passage]]
    await embedder.close()


@pytest.mark.parametrize(
    ("model", "text", "read"),
    [
        (DEFAULT_MODEL, "数据库在哪里", 1),
        ("bge-m3", "ฐานข้อมูลอยู่ที่ไหน", 1),
        ("granite-embedding:278m", "Wo ist die Datenbank?", 1),
        ("bge-m3", "1.0.21", 0),
        ("bge-m3", "\ud800", 0),
        ("granite-embedding:30m", "数据库在哪里", 0),
        ("all-minilm", "where is the database", 1),
        ("some-new-model", "أين قاعدة البيانات", 0),
    ],
)
def test_how_far_a_model_reads(model: str, text: str, read: float) -> None:
    assert OllamaEmbedder("http://127.0.0.1:1", model).reads(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\0",
        "a\0b",
        "\ud800",
        "\U000e0001",
        "[CLS]",
        "\x1b[2J",
        "数据库",
        "🐘" * 3000,
        "x" * 300_000,
    ],
    ids=lambda text: ascii(text[:9]),
)
async def test_any_text_has_a_vector(server: ScriptedOllama, embedder: OllamaEmbedder, text: str) -> None:
    (row,) = await embedder.passages([text])
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(await embedder.query(text)) == pytest.approx(1, abs=1e-5)
    sent = [sent for texts in server.embedded for sent in texts]
    assert all(piece.strip() and "\0" not in piece for piece in sent)


async def test_long_text_is_read_whole_in_bounded_requests(
    server: ScriptedOllama, embedder: OllamaEmbedder
) -> None:
    words = [f"w{number}" for number in range(30_000)]
    await embedder.passages([" ".join(words), "short"])
    sent = [piece for texts in server.embedded for piece in texts]
    read = {word for piece in sent for word in piece.split()}
    assert read >= set(words)
    assert max(map(len, sent)) < 512 / 0.4
    assert max(map(len, server.embedded)) <= 64
    assert max(sum(map(len, texts)) for texts in server.embedded) <= 65_536
    assert all(asked.body["truncate"] is False for asked in server.asked if asked.path == "/api/embed")


def crowded(most: int, error: str, status: int) -> object:
    """Answers only requests whose texts are each at most so long."""

    def answer(asked: Asked) -> Answer:
        if max(map(len, asked.body["input"])) > most:
            return Answer({"error": error}, status)
        return Answer({"embeddings": [vector(text) for text in asked.body["input"]]})

    return answer


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("the input length exceeds the context length", 400),
        ("input length exceeds maximum context length", 400),
        ('do embedding request: Post "http://127.0.0.1:43229/embedding": EOF', 500),
    ],
)
async def test_what_is_too_long_after_all_is_read_in_parts(
    server: ScriptedOllama, embedder: OllamaEmbedder, error: str, status: int
) -> None:
    await embedder.ready()
    server.answers["/api/embed"] = crowded(100, error, status)  # type: ignore[assignment]
    text = "".join(chr(0x4E00 + number) for number in range(700))
    before = len(server.embedded)
    short, long = await embedder.passages(["short", text])
    assert short == pytest.approx(unit("short"), abs=1e-6)
    read = [piece for texts in server.embedded[before:] for piece in texts if len(piece) <= 100]
    assert set("".join(read)) >= set(text)
    assert np.linalg.norm(long) == pytest.approx(1, abs=1e-5)


async def test_what_is_too_long_at_any_length_fails_soon(
    server: ScriptedOllama, embedder: OllamaEmbedder
) -> None:
    await embedder.ready()
    server.answers["/api/embed"] = crowded(0, "the input length exceeds the context length", 400)  # type: ignore[assignment]
    before = len(server.embedded)
    with pytest.raises(ModelError, match="A text is too long for all-minilm: the input length exceeds"):
        await embedder.passages(["many words " * 3000] * 10)
    assert len(server.embedded) - before < 20


HTML = b"<html>Welcome</html>"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Answer({"error": 'model "all-minilm" not found'}, 404),
            r"has no model all-minilm\. Pull it: noctuary models pull",
        ),
        (Answer({"error": "this model does not support embeddings"}, 400), "is not an embedding model"),
        (
            Answer({"error": "json: unsupported value: NaN"}, 500),
            r"failed on all-minilm: json.*NaN\. Look into its log",
        ),
        (Answer({"error": "server busy"}, 503), "failed on all-minilm: server busy"),
        (Answer("out of memory", 500), "does not speak Ollama's protocol"),
        (Answer(b"", 404), "does not speak Ollama's protocol"),
        (Answer(HTML, 404), "does not speak Ollama's protocol"),
        (Answer(HTML), "does not speak Ollama's protocol"),
        (Answer([]), "does not speak Ollama's protocol"),
        (Answer({"embeddings": None}), "does not speak Ollama's protocol"),
        (Answer({"embeddings": [[None] * 8]}), "does not speak Ollama's protocol"),
        (Answer(b"\xff\xfe"), "does not speak Ollama's protocol"),
        (Answer(b"", 401), "wants a password.*http://user:password@host"),
        (Answer({"embeddings": []}), "gave 0 vectors for 1 texts"),
        (Answer({"embeddings": [[1.0] * 8] * 2}), "gave 2 vectors for 1 texts"),
        (Answer({"embeddings": [[1.0] * 4]}), "gave vectors of 4 numbers, not of 8"),
        (Answer({"embeddings": [[]]}), "gave vectors of 0 numbers"),
        (Answer({"embeddings": [[float("nan")] * 8]}), "without a direction"),
        (Answer({"embeddings": [[1e39] * 8]}), "without a direction"),
        (Answer({"embeddings": [[0.0] * 8]}), "without a direction"),
        (Answer({"embeddings": [[1.0] * 8]}, cut=True), "broke off"),
    ],
)
async def test_a_wrong_answer_is_one_sentence_and_leaves_no_mark(
    server: ScriptedOllama, embedder: OllamaEmbedder, answer: Answer, said: str
) -> None:
    await embedder.ready()
    server.answers["/api/embed"] = lambda asked: answer
    for ask in (lambda: embedder.query("x"), lambda: embedder.passages(["x"])):
        with pytest.raises(ModelError, match=said) as raised:
            await ask()
        assert "\n" not in str(raised.value)
    del server.answers["/api/embed"]
    assert (await embedder.query("x")).shape == (DIMENSION,)
    await embedder.ready()


@pytest.mark.parametrize("path", ["/api/tags", "/api/show", "/api/embed"])
async def test_ready_may_be_tried_again(server: ScriptedOllama, embedder: OllamaEmbedder, path: str) -> None:
    server.answers[path] = lambda asked: Answer({"error": "not now"}, 500)
    with pytest.raises(ModelError, match="not now"):
        await embedder.ready()
    with pytest.raises(ModelError, match="was not reached"):
        _ = embedder.model_id
    del server.answers[path]
    await embedder.ready()
    assert embedder.dimension == DIMENSION


async def test_a_model_that_is_not_there(server: ScriptedOllama) -> None:
    embedder = OllamaEmbedder(server.url, "qwen3-embedding:4b")
    with pytest.raises(
        ModelError, match=r"no model qwen3-embedding:4b\. Pull it: noctuary models pull qwen3-embedding:4b"
    ):
        await embedder.ready()
    await embedder.close()


async def test_a_chat_model_is_refused(server: ScriptedOllama) -> None:
    server.models = {"smollm2:135m": {"capabilities": ["completion"]}}
    embedder = OllamaEmbedder(server.url, "smollm2:135m")
    with pytest.raises(ModelError, match="smollm2:135m is not an embedding model"):
        await embedder.ready()
    await embedder.close()


async def test_no_server_then_one_then_none_then_one(
    server: ScriptedOllama, embedder: OllamaEmbedder
) -> None:
    refused = r"does not answer at http://127\.0\.0\.1:\d+\. Start it: ollama serve, or set OLLAMA_URL\."
    await server.stop()
    with pytest.raises(ModelError, match=refused):
        await embedder.ready()
    await server.start()
    await embedder.ready()
    await server.stop()
    with pytest.raises(ModelError, match=refused):
        await embedder.query("x")
    with pytest.raises(ModelError, match=refused):
        await embedder.passages(["x"])
    assert embedder.dimension == DIMENSION
    await server.start()
    assert (await embedder.query("x")).shape == (DIMENSION,)
    assert (await embedder.passages(["x"])).shape == (1, DIMENSION)


@pytest.mark.parametrize("after", ["a failure", "a while"])
async def test_a_model_pulled_anew_is_another_one(
    server: ScriptedOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    await embedder.ready()
    server.digest, server.dimension = "sha256:" + "f" * 64, 16
    if after == "a failure":
        with pytest.raises(ModelError, match="16 numbers, not of 8"):
            await embedder.query("x")
    else:
        monkeypatch.setattr(embedding_ollama, "LOOK_AGAIN_SECONDS", -1)
    await embedder.ready()
    assert (embedder.model_id, embedder.dimension) == ("ollama:all-minilm@ffffffffffff", 16)
    assert (await embedder.query("x")).shape == (16,)


async def test_a_silent_server_is_given_up(
    server: ScriptedOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await embedder.ready()
    monkeypatch.setattr(ollama_server, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(ollama_server, "REACH_SECONDS", 0.05)
    server.held = lambda asked: True
    with pytest.raises(ModelError, match=r"did not answer within 0\.05 s\. Start it"):
        await embedder.query("x")
    await asyncio.wait_for(server.dropped.wait(), 30)
    with pytest.raises(ModelError, match="did not answer within"):
        await embedder.ready()


async def test_cancelling_hangs_up_and_asks_no_more(server: ScriptedOllama, embedder: OllamaEmbedder) -> None:
    await embedder.ready()
    server.held = lambda asked: True
    before = len(server.asked)
    passages = asyncio.create_task(embedder.passages(["many words " * 3000] * 20))
    await asyncio.wait_for(server.waiting.wait(), 30)
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages
    await asyncio.wait_for(server.dropped.wait(), 30)
    server.held = lambda asked: False
    assert len(server.asked) == before + 1
    assert (await embedder.passages(["x"])).shape == (1, DIMENSION)


async def test_a_query_does_not_wait_for_passages(server: ScriptedOllama, embedder: OllamaEmbedder) -> None:
    await embedder.ready()
    server.held = lambda asked: "x" not in asked.body["input"]
    passages = asyncio.create_task(embedder.passages(["passage"] * 3))
    await asyncio.wait_for(server.waiting.wait(), 30)
    assert (await asyncio.wait_for(embedder.query("x"), 30)).shape == (DIMENSION,)
    assert not passages.done()
    server.gate.set()
    assert (await passages).shape == (3, DIMENSION)


async def test_passages_go_one_request_at_a_time_and_share_the_turns(
    server: ScriptedOllama, embedder: OllamaEmbedder
) -> None:
    await embedder.ready()
    before, server.most_at_once = len(server.embedded), 0
    await asyncio.gather(*(embedder.passages([f"{name} words " * 9000]) for name in ("red", "blue")))
    assert server.most_at_once == 1
    colours = ["red" in texts[0] for texts in server.embedded[before:]]
    assert colours[:4] in ([True, False, True, False], [False, True, False, True])


async def test_closing_ends_what_is_awaited_and_refuses_more(
    server: ScriptedOllama, embedder: OllamaEmbedder
) -> None:
    await embedder.ready()
    server.held = lambda asked: True
    passages = asyncio.create_task(embedder.passages(["x"] * 50))
    await asyncio.wait_for(server.waiting.wait(), 30)
    await embedder.close()
    with pytest.raises(ModelError, match="was closed"):
        await passages
    with pytest.raises(ModelError, match="was closed"):
        await embedder.query("trains")
    await embedder.close()


async def test_a_proxy_of_the_environment_is_not_for_this_machine(
    server: ScriptedOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    await embedder.ready()
    assert server.asked


async def test_a_proxy_that_cannot_be_used_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    embedder = OllamaEmbedder("http://ollama.invalid", MODEL)
    with pytest.raises(ModelError, match="Check OLLAMA_URL, and the proxy"):
        await embedder.ready()


async def test_a_password_is_sent_and_never_shown(server: ScriptedOllama) -> None:
    url = f"http://me:s%40cret@127.0.0.1:{server.port}"
    embedder = OllamaEmbedder(url, MODEL)
    await embedder.ready()
    sent = server.asked[0].headers["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"me:s@cret"
    await server.stop()
    with pytest.raises(ModelError, match="does not answer") as raised:
        await embedder.query("x")
    assert "cret" not in str(raised.value)
    await embedder.close()
    await server.start()


async def test_pulling_tells_how_far_it_is(server: ScriptedOllama) -> None:
    lines = b'{"status":"pulling manifest"}\n{"status":"pulling 1","completed":3,"total":9}\n{"status":"success"}\n'
    server.answers["/api/pull"] = lambda asked: Answer(lines)
    parts = [(part.status, part.completed, part.total) async for part in pull(server.url, MODEL)]
    assert parts == [("pulling manifest", None, None), ("pulling 1", 3, 9), ("success", None, None)]
    assert server.asked[-1].body["model"] == MODEL


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Answer(b'{"status":"pulling manifest"}\n{"error":"pull model manifest: file does not exist"}\n'),
            "could not pull nope: pull model manifest",
        ),
        (
            Answer({"error": "invalid model name"}, 400),
            "could not pull nope: invalid model name.*ollama.com/library",
        ),
        (Answer(HTML), "does not speak Ollama's protocol"),
        (Answer(b'{"status":"pulling manifest"}\n', cut=True), "broke off"),
    ],
)
async def test_a_pull_that_fails(server: ScriptedOllama, answer: Answer, said: str) -> None:
    server.answers["/api/pull"] = lambda asked: answer
    with pytest.raises(ModelError, match=said):
        _ = [part async for part in pull(server.url, "nope")]


async def test_a_pull_may_be_left(server: ScriptedOllama) -> None:
    server.answers["/api/pull"] = lambda asked: Answer(b'{"status":"one"}\n', cut=False)
    parts = pull(server.url, MODEL)
    assert (await anext(parts)).status == "one"
    await parts.aclose()  # type: ignore[attr-defined]


async def test_the_models_a_server_has(server: ScriptedOllama) -> None:
    server.models = {
        "qwen3:8b": {"capabilities": ["completion"], "model_info": {"qwen3.embedding_length": 4096}},
        "bge-m3:latest": {"capabilities": ["embedding"], "model_info": {"bert.embedding_length": 1024}},
        "old:latest": {},
    }
    found = [(model.name, model.size, model.dimension, model.embeds) for model in await installed(server.url)]
    assert found == [
        ("bge-m3:latest", 7, 1024, True),
        ("old:latest", 7, None, None),
        ("qwen3:8b", 7, None, False),
    ]
    server.models = {}
    assert await installed(server.url) == []
