"""`noctuary models`, as it is typed: what it prints, as text and as JSON, and its exit statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doors import exits
from tests.scripted_ollama import Answer

if TYPE_CHECKING:
    from tests.integration.line import Line
    from tests.scripted_ollama import ScriptedOllama

BUNDLED_ID = "all-MiniLM-L6-v2-int8"


def test_a_model_is_listed_tried_changed_taken_back_and_forgotten(
    noctuary: Line, ollama_beside: ScriptedOllama
) -> None:
    noctuary.index()
    (row,) = noctuary("models", "--json").json["models"]
    assert (row["name"], row["making"], row["answers"]) == (BUNDLED_ID, True, True)
    assert (row["embedded"], row["pending"]) == (0, 3)
    tried = noctuary("models", "test", "--json").json
    assert tried["model"] == BUNDLED_ID
    assert tried["answer_distance"] < tried["default_distance"] < tried["other_distance"]
    assert f"{BUNDLED_ID} works: vectors of 384 numbers" in noctuary("models", "test").out
    assert noctuary("index", str(noctuary.notes)).status == exits.DONE
    chosen = noctuary("models", "--json", "use", "ollama/all-minilm").json["chosen"]
    assert chosen.startswith("ollama:all-minilm@")
    listed = noctuary("models").out
    assert "answers until the new one has its vectors" in listed or "ollama/all-minilm is wanted" in listed
    assert noctuary("index", str(noctuary.notes)).status == exits.DONE
    assert noctuary("models").out.splitlines()[1].split("  ")[-1] == "in use"
    refused = noctuary("models", "remove", chosen)
    assert (refused.status, "is in use" in refused.err) == (exits.ERROR, True)
    assert noctuary("models", "use", "bundled").status == exits.DONE
    assert noctuary("models", "remove", chosen).out == f"The vectors of {chosen} are removed.\n"
    assert [row["name"] for row in noctuary("models", "--json").json["models"]] == [BUNDLED_ID]


def test_what_is_not_there_is_an_error_that_says_what_to_do(
    noctuary: Line, ollama_beside: ScriptedOllama
) -> None:
    for arguments, said in (
        (("use", "cloud"), "Name one of: bundled, ollama"),
        (("use", "bundled/bert"), "the bundled embedder is 'all-MiniLM-L6-v2'"),
        (("use", "ollama/nonesuch"), "noctuary models pull nonesuch"),
        (("test", "ollama/nonesuch"), "noctuary models pull nonesuch"),
        (("remove", "nonesuch"), "The index knows no model 'nonesuch'."),
    ):
        outcome = noctuary("models", *arguments)
        assert outcome.status == exits.ERROR
        assert said in outcome.err
        assert outcome.out == ""


def test_a_model_is_pulled(noctuary: Line, ollama_beside: ScriptedOllama) -> None:
    ollama_beside.answers["/api/pull"] = lambda asked: Answer({"status": "success"})
    pulled = noctuary("models", "pull", "nomic-embed-text")
    assert pulled.status == exits.DONE
    assert "`noctuary models use ollama/nomic-embed-text` changes to it" in pulled.out
    assert "success" in pulled.err
    ollama_beside.answers["/api/pull"] = lambda asked: Answer({"error": "no such model"}, 404)
    failed = noctuary("models", "pull", "nonesuch")
    assert (failed.status, failed.out) == (exits.ERROR, "")
    assert "no such model" in failed.err
