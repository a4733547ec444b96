"""Memory on the command line: turns, what was learned, cores; and that a deletion shows no text."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from engine.doors.remembering import NOT_KNOWN
from tests.hostile import PAYLOADS, obeyed

if TYPE_CHECKING:
    from tests.integration.line import Line, Outcome

CORRECTION = "No, that is wrong: I want answers in one line."
RULE = "Answer in one line."


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have these set."""
    for name in ("NOCTUARY_CORE", "NOCTUARY_USER"):
        monkeypatch.delenv(name, raising=False)


def typed(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def done(outcome: Outcome) -> Outcome:
    assert outcome.status == exits.DONE, outcome
    return outcome


def learned(noctuary: Line) -> str:
    """Learn a rule by hand; its reference."""
    done(noctuary("remember", CORRECTION))
    batch = done(noctuary("synthesize", "prepare", "--json")).json
    cluster = str(batch["clusters"][0]["id"])
    made = done(noctuary("synthesize", "distil", cluster, RULE, "--json")).json
    return f"L{made['lesson']}"


def test_a_turn_goes_round(noctuary: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = done(noctuary("prepare", "My", "name", "is", "Alice.", "--json")).json
    assert prepared["messages"][-1]["content"] == "My name is Alice."
    token = prepared["turn_token"]
    assert done(noctuary("verify", "Hello, Alice.", "--token", token)).out.startswith("Nothing that is known")
    typed(monkeypatch, "Hello, Alice.\n")
    assert done(noctuary("record", "--token", token, "-")).out == "Kept, as turn 1 (raw).\n"
    typed(monkeypatch, "Hello, Alice.\n")
    assert done(noctuary("record", "--token", token, "-", "--json")).json["again"] is True
    other = noctuary("record", "--token", token, "Another answer.")
    assert (other.status, other.out) == (exits.ERROR, "")
    assert other.err.startswith("Turn token: The turn token was used, with another answer.")
    shown = done(noctuary("memory")).out
    assert "    My name is Alice.\n  The answer was:\n    Hello, Alice.\n" in shown
    wrong = noctuary("verify", "Your name is Bob.")
    assert wrong.status == exits.FOUND_NOTHING
    assert "contradiction: name: known as 'Alice'" in wrong.out
    claimed = done(noctuary("prepare", "My name is Bob, right?")).out
    assert claimed.splitlines()[-2].startswith("contradiction: name: known as 'Alice', now said to be 'Bob'")
    assert claimed.splitlines()[-1].startswith("turn token: ")
    metrics = done(noctuary("memory", "metrics", "--json")).json
    assert (metrics["packets"], metrics["channels"]) == (1, 1)
    assert "packets" in done(noctuary("memory", "metrics")).out


def test_what_was_said_is_recalled_with_who_said_it_and_when(noctuary: Line) -> None:
    remembered = noctuary(
        "remember",
        "Owls hunt at night.",
        "--speaker",
        "Bob",
        "--at",
        "2024-05-06",
        "--response",
        "So they do.",
    )
    assert done(remembered).out == "Kept, as turn 1 (raw).\n"
    told = done(noctuary("recall", "when", "do", "owls", "hunt", "--k", "1"))
    assert told.out.startswith("2024-05-06 00:00 Bob said (raw, similarity ")
    assert told.out.endswith("):\n    Owls hunt at night.\n  The answer was:\n    So they do.\n")
    (source,) = done(noctuary("recall", "owls", "--json")).json["sources"]
    assert (source["speaker"], source["at"]) == ("Bob", "2024-05-06T00:00:00+00:00")
    nothing = noctuary("recall", "zebra")
    assert (nothing.status, nothing.out) == (exits.FOUND_NOTHING, f"{NOT_KNOWN}\n")


def test_a_secret_is_masked_and_told_of(noctuary: Line) -> None:
    key = "sk-ant-api03-" + "abcdefghij" * 9 + "abc-defghiAA"
    told = done(noctuary("remember", f"My key is {key}."))
    assert told.err == "1 secret in it masked.\n"
    assert key not in noctuary("memory", "--json").out


@pytest.mark.parametrize("command", ["recall", "remember", "prepare", "verify"])
def test_nothing_to_say_is_a_usage_error(
    noctuary: Line, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, " \n")
    for words in (["-"], [" "], [""]):
        refused = noctuary(command, *words)
        assert (refused.status, refused.out) == (exits.ERROR, ""), words
        assert "The text is empty." in refused.err


def test_standard_input_that_is_not_utf8_is_read_all_the_same(
    noctuary: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, b"Owls \xff hunt \x00.")
    done(noctuary("remember", "-"))
    (packet,) = done(noctuary("memory", "--json")).json["packets"]
    assert packet["input"].startswith("Owls \ufffd hunt ")


def test_cores_are_made_here_and_keep_their_memories_apart(
    noctuary: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(noctuary("cores")).out == "default  Default  the default one\n"
    unknown = noctuary("remember", "x", "--core", "work")
    assert (unknown.status, unknown.out) == (exits.ERROR, "")
    assert unknown.err.startswith("Core: There is no core 'work'.")
    assert done(noctuary("cores", "add", "work", "--name", "At work")).out == "The core work is made.\n"
    assert noctuary("cores", "add", "work").status == exits.ERROR
    assert noctuary("cores", "add", "No Slug!").status == exits.ERROR
    for whose, text in (
        ([], "The heron is at home."),
        (["--core", "work"], "The heron is at work."),
        (["--core", "work", "--user", "ann"], "The heron is Ann's."),
    ):
        done(noctuary("remember", text, *whose))
        (packet,) = done(noctuary("memory", "--json", *whose)).json["packets"]
        assert packet["input"] == text
    monkeypatch.setenv("NOCTUARY_CORE", "work")
    monkeypatch.setenv("NOCTUARY_USER", "ann")
    assert "Ann's" in noctuary("memory").out
    assert noctuary("memory", "--core", "default").status == exits.FOUND_NOTHING, "there is no Ann there"
    assert noctuary("cores", "--account", "acme").status == exits.FOUND_NOTHING
    first = done(noctuary("cores", "add", "main", "--account", "acme"))
    assert first.out == "The core main is made and is the default one.\n"
    slugs = [core["slug"] for core in done(noctuary("cores", "--account", "acme", "--json")).json["cores"]]
    assert slugs == ["main"]


def test_a_lesson_is_learned_shown_pinned_and_worded_anew(noctuary: Line) -> None:
    lesson = learned(noctuary)
    listed = done(noctuary("lessons")).out
    assert listed.startswith(f"{lesson}  ")
    assert listed.endswith(f"  {RULE}\n")
    shown = done(noctuary("lessons", "show", lesson)).out
    assert shown.startswith(f"{lesson} (living): {RULE}\n")
    assert f"the user said (correction):\n    {CORRECTION}\n" in shown
    detail = done(noctuary("lessons", "show", lesson[1:], "--json")).json
    assert (detail["lesson"]["reference"], detail["lesson"]["text"]) == (lesson, RULE)
    assert [row["action"] for row in detail["history"]] == ["create"]
    assert done(noctuary("lessons", "pin", lesson)).out == f"{lesson} is pinned.\n"
    assert "pinned" in noctuary("lessons").out
    assert done(noctuary("lessons", "unpin", lesson)).out == f"{lesson} is no longer pinned.\n"
    done(noctuary("lessons", "edit", lesson, "Answer", "in", "two", "lines."))
    (found,) = done(noctuary("lessons", "--filter", "two lines", "--unused", "--json")).json["lessons"]
    assert found["text"] == "Answer in two lines."
    assert noctuary("lessons", "--filter", "zebra").status == exits.FOUND_NOTHING
    assert noctuary("lessons", "--expired").status == exits.FOUND_NOTHING
    actions = [row["action"] for row in done(noctuary("lessons", "audit", lesson, "--json")).json["audit"]]
    assert actions == ["edit", "unpin", "pin", "create"]


def test_a_lesson_is_deleted_by_its_number_and_its_text_is_shown_to_nobody(noctuary: Line) -> None:
    lesson = learned(noctuary)
    unasked = noctuary("lessons", "delete", lesson)
    assert (unasked.status, unasked.out) == (exits.ERROR, "")
    assert "say --yes" in unasked.err
    gone = noctuary("lessons", "delete", lesson, "L99", "--yes", "--reason", "It was once.")
    assert (gone.status, gone.out) == (exits.FOUND_NOTHING, f"{lesson} is deleted.\n")
    assert gone.err == "L99 is not there, or was deleted before.\n"
    again = noctuary("lessons", "delete", lesson, "--yes", "--json")
    assert again.json == {"done": [], "left": [lesson]}
    listed = done(noctuary("lessons", "tombstones"))
    assert listed.out.startswith(f"{lesson}  ")
    assert "It was once." in listed.out
    assert RULE not in f"{unasked}{gone}{again}{listed}"
    assert RULE in done(noctuary("lessons", "tombstones", "--text")).out
    assert noctuary("lessons").status == exits.FOUND_NOTHING
    assert done(noctuary("lessons", "lift", lesson)).out == f"{lesson} is lifted.\n"
    assert done(noctuary("lessons")).out.endswith(f"{RULE}\n")
    assert noctuary("lessons", "tombstones").status == exits.FOUND_NOTHING


@pytest.mark.parametrize("reference", ["L0", "x", "", "L1x", "-1", "L99999999999"])
def test_what_names_no_lesson_is_a_usage_error(noctuary: Line, reference: str) -> None:
    refused = noctuary("lessons", "show", "--", reference)
    assert (refused.status, refused.out) == (exits.ERROR, "")
    assert "is no lesson: it is called L12, or 12." in refused.err


def test_a_lesson_that_is_not_there_is_told(noctuary: Line) -> None:
    for arguments in (["show", "L9"], ["edit", "L9", "x"]):
        refused = noctuary("lessons", *arguments)
        assert (refused.status, refused.out) == (exits.ERROR, "")
        assert refused.err.startswith("Lesson: ")


def test_learning_by_a_model_of_ones_own(noctuary: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    assert noctuary("synthesize", "prepare").status == exits.FOUND_NOTHING
    done(noctuary("remember", CORRECTION))
    run = done(noctuary("synthesize"))
    assert run.out == "default: 1 new turn read: 1 waiting.\n"
    assert "No language model is set." in run.err
    assert CORRECTION in done(noctuary("synthesize", "prepare")).out
    batch = done(noctuary("synthesize", "prepare", "--json")).json
    (cluster,) = batch["clusters"]
    rules = [{"cluster_id": cluster["id"], "text": RULE}, {"cluster_id": 99, "text": None}]
    typed(monkeypatch, json.dumps({"synthesis_token": batch["synthesis_token"], "lessons": rules}))
    told = done(noctuary("synthesize", "record", "-")).out.splitlines()
    assert told[0] == f"cluster {cluster['id']}: a new lesson (L1)."
    assert told[1].startswith("cluster 99: it waits on.")
    assert noctuary("synthesize", "waiting").status == exits.FOUND_NOTHING
    assert "1 created" in done(noctuary("synthesize", "runs")).out
    assert done(noctuary("synthesize", "--all", "--json")).json == {"runs": []}


NO_RULES = [
    "{",
    "[]",
    "{}",
    '{"synthesis_token": 7, "lessons": []}',
    '{"synthesis_token": "x"}',
    '{"synthesis_token": "x", "lessons": [{}]}',
    '{"synthesis_token": "x", "lessons": [{"cluster_id": true, "text": "x"}]}',
    "[" * 100_000,
]


def test_what_holds_no_rules_is_a_usage_error(noctuary: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    noctuary.write("rules.json", b"\xff")
    for text in NO_RULES:
        typed(monkeypatch, text)
        refused = noctuary("synthesize", "record", "-")
        assert (refused.status, refused.out, refused.err.count("\n")) == (exits.ERROR, "", 1), text
        assert "- does not hold what was distilled" in refused.err
    for file in (noctuary.notes / "rules.json", noctuary.notes / "none.json", noctuary.notes):
        assert noctuary("synthesize", "record", str(file)).status == exits.ERROR


def test_conversations_are_imported_once_and_what_was_passed_over_is_told(noctuary: Line) -> None:
    rows = [
        {"channel": "walk", "role": "user", "text": "Where do owls sleep?", "at": "2024-05-06T10:00:00Z"},
        {"channel": "walk", "role": "assistant", "text": "In trees.", "at": "2024-05-06T10:00:01Z"},
        {"channel": "walk", "role": "user", "text": "And larks?", "at": "2024-05-06T10:01:00Z"},
    ]
    noctuary.write("talk.jsonl", "".join(json.dumps(row) + "\n" for row in rows) + "no JSON\n")
    talk = str(noctuary.notes / "talk.jsonl")
    dry = done(noctuary("import", "jsonl", talk, "--dry-run"))
    assert dry.out.startswith(
        "1 file, 1 conversation: 1 turn would be imported, 0 known before.\nPassed over:\n"
    )
    assert "talk.jsonl:" in dry.out
    assert noctuary("memory").status == exits.FOUND_NOTHING
    assert done(noctuary("import", "jsonl", talk, "--json")).json["packets"] == 1
    again = done(noctuary("import", "jsonl", talk))
    assert again.out.startswith("1 file, 1 conversation: 0 turns imported, 1 known before.")
    (packet,) = done(noctuary("memory", "--json")).json["packets"]
    assert (packet["input"], packet["channel"]) == ("Where do owls sleep?", "walk")
    both = noctuary("import", "jsonl", talk, "--dry-run", "--follow")
    assert (both.status, both.out) == (exits.ERROR, "")
    for arguments in (["nothing", talk], ["jsonl", str(noctuary.notes / "none")]):
        refused = noctuary("import", *arguments)
        assert (refused.status, refused.out) == (exits.ERROR, "")
        assert refused.err.startswith("Import: ")


def test_hostile_text_is_only_shown(noctuary: Line) -> None:
    for payload in PAYLOADS:
        typed = noctuary("remember", f"The heron says {payload}", "--speaker", f"Heron {payload}")
        assert typed.status in {exits.DONE, exits.ERROR}
    for command in (["memory", "--limit", "200"], ["recall", "heron", "--k", "50"], ["prepare", "heron"]):
        said = noctuary(*command)
        assert said.status == exits.DONE
        assert not obeyed(f"{said.out}{said.err}".encode())
