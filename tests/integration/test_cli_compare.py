"""`noctuary models compare`, as it is typed: what it prints, as text and as JSON, and its exit statuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.doors import exits

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.line import Line
    from tests.scripted_ollama import ScriptedOllama

BUNDLED_ID = "all-MiniLM-L6-v2-int8"
OTHER_ID = "ollama:all-minilm@0123456789ab"
OTHER = ("--model", "ollama/all-minilm")

QUESTIONS = [
    {"id": "heron", "question": "where did the heron stand", "expect": "citation", "expect_lines": "log.md:L3-L3"},
    {"id": "bird", "question": "wading birds", "expect": "citation", "expect_path_contains": "log.md", "k": 2},
    {"id": "lantern\x1b[2J", "question": "lantern", "expect": "citation", "expect_path_contains": "plan.md"},
    {"id": "gone", "question": "lantern", "expect": "citation", "expect_path_contains": "nowhere.md"},
    {"id": "win", "question": "who won the last world cup", "expect": "negative"},
]  # fmt: skip


@pytest.fixture
def asked(tmp_path: Path) -> str:
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(QUESTIONS))
    return str(file)


@pytest.fixture
def indexed(noctuary: Line, ollama_beside: ScriptedOllama) -> Line:
    """The notes with the vectors of the bundled model, and another model in reach."""
    assert noctuary("index", str(noctuary.notes)).status == exits.DONE
    return noctuary


def models(line: Line) -> Any:
    return line("models", "--json").json


def test_a_table_says_how_each_model_answers_and_where_they_differ(indexed: Line, asked: str) -> None:
    found = indexed("models", "compare", asked, "--model", "bundled", *OTHER)
    assert found.status == exits.DONE, found
    head, *rows = [line.split("  ") for line in found.out.split("\n\n")[0].splitlines()]
    assert [cell.strip() for cell in head if cell.strip()] == [
        "model", "right", "recall@k", "MRR", "by meaning@k", "median", "p95", "vectors",
    ]  # fmt: skip
    assert [row[0] for row in rows] == [BUNDLED_ID, OTHER_ID, "keywords alone"]
    bundled = " ".join(" ".join(rows[0]).split())
    assert bundled.startswith(f"{BUNDLED_ID} 4/5 0.750 0.625 0.750")
    assert bundled.endswith("3/3 best, in use")
    assert "3/3" in " ".join(rows[1])
    assert f"{BUNDLED_ID} against " in found.out
    assert "chance may explain that" in found.out
    assert f"Right only with {BUNDLED_ID}: bird" in found.out
    assert "Right with none: gone\n" in found.out
    assert "No indexed note is what these ask for: gone\n" in found.out
    assert f"Vectors of {OTHER_ID} are missing for 3 of 3 passages: they are made first." in found.err


def test_json_holds_everything_and_nothing_else_is_printed(indexed: Line, asked: str) -> None:
    found = indexed("models", "compare", asked, *OTHER, "--json")
    assert found.status == exits.DONE
    other, keywords = found.json["models"]
    assert (other["name"], other["provider"], other["model"]) == (OTHER_ID, "ollama", "all-minilm")
    assert (other["embedded"], other["passages"], other["in_use"]) == (3, 3, False)
    assert (keywords["name"], keywords["embedded"], keywords["meaning"]) == ("keywords alone", None, None)
    assert keywords["hybrid"]["questions"] == 5
    assert set(keywords["hybrid"]) == {
        "questions", "right", "recall", "mrr", "ndcg", "failing", "median_ms", "p95_ms",
    }  # fmt: skip
    assert found.json["absent"] == ["gone"]
    assert [(each["id"], each["k"]) for each in found.json["questions"]] == [
        ("heron", 3), ("bird", 2), ("lantern\x1b[2J", 3), ("gone", 3), ("win", 3),
    ]  # fmt: skip
    lantern = found.json["questions"][2]["models"]
    assert set(lantern) == {OTHER_ID, "keywords alone"}
    assert set(lantern[OTHER_ID]) == {"hybrid", "meaning"}
    assert lantern["keywords alone"]["hybrid"]["cited"] == ["work/plan.md:L1-L3"]
    assert found.json["against"]["name"] in {OTHER_ID, "keywords alone"}
    assert indexed("models", "--json", "compare", asked, *OTHER).json["models"][0]["name"] == OTHER_ID


def test_nothing_is_chosen_by_it(indexed: Line, asked: str) -> None:
    before = models(indexed)
    assert indexed("models", "compare", asked, *OTHER).status == exits.DONE
    after = models(indexed)
    assert after["wanted"] == before["wanted"]
    assert after["models"][0] == before["models"][0]
    assert (after["models"][1]["complete_at"], after["models"][1]["answers"]) == (None, False)
    assert "kept" in indexed("models").out.splitlines()[1]
    assert indexed("models", "remove", OTHER_ID).status == exits.DONE
    assert models(indexed) == before


def test_a_question_cannot_steer_the_terminal(indexed: Line, asked: str) -> None:
    found = indexed("models", "compare", asked, "--model", "bundled")
    assert "\x1b" not in found.out + found.err


def test_a_model_that_cannot_be_measured_is_told_beside_the_others(indexed: Line, asked: str) -> None:
    found = indexed("models", "compare", asked, "--model", "ollama/nonesuch", "--model", "bundled")
    assert found.status == exits.ERROR, "it was named"
    assert "Not measured: ollama/nonesuch. Ollama has no model" in found.out
    assert BUNDLED_ID in found.out
    found = indexed("models", "compare", asked, *OTHER, "--no-embed")
    assert found.status == exits.ERROR
    assert f"Not measured: {OTHER_ID}. The index has no vectors of it." in found.out
    indexed("models", "compare", asked, *OTHER)
    indexed.write("new.md", "# Wrens\n\nA wren.\n")
    indexed("index")
    found = indexed("models", "compare", asked)
    assert found.status == exits.DONE, "nobody named it"
    assert f"Not measured: {OTHER_ID} (3 of 4 vectors). It has too few vectors;" in found.out
    assert "`--model ollama/all-minilm` has the others made" in found.out
    found = indexed("models", "compare", asked, *OTHER, "--no-embed")
    assert found.status == exits.DONE
    assert f"{OTHER_ID}: It was measured with the vectors of 3 of 4 passages." in found.out


def test_what_is_wrong_is_one_sentence(noctuary: Line, ollama_beside: ScriptedOllama, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps([QUESTIONS[0], {**QUESTIONS[1], "expects": "citation"}]))
    good = tmp_path / "good.json"
    good.write_text(json.dumps(QUESTIONS))
    assert "holds no text" in noctuary("models", "compare", str(good)).err
    noctuary.index()
    for arguments, said in (
        ((), "Missing argument 'FILE'"),
        (("",), "it is empty"),
        (("nowhere.json",), "nowhere.json cannot be read: No such file or directory. Check the path."),
        ((str(bad),), "row 2: 'expects' is not a field of a question. Did you mean expect?"),
        ((str(good), "--model", "cloud"), "Name one of: bundled, ollama"),
        ((str(good), "--model", ""), "it is empty"),
        ((str(good),), "No model has the vectors of nearly all 3 passages. `noctuary index` makes those"),
    ):
        found = noctuary("models", "compare", *arguments)
        assert (found.status, found.out) == (exits.ERROR, "")
        assert said in found.err
        assert found.err.count("\n") == 1
    assert ollama_beside.asked == []


def test_the_distance_of_the_settings_is_told(
    indexed: Line, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVAL_MAX_DISTANCE", "0.5")
    assert "RETRIEVAL_MAX_DISTANCE is 0.5 for every model" in indexed("models", "compare", asked).out
