"""What the search pane says, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.notes.model import NO_EVIDENCE, IndexCounts, JobCounts, Mode, NotesStatus, SearchResult
from tui.panes.search_text import Found, Question, nothing, summary


def status(folders: int = 1, files: int = 5, pending: int = 0) -> NotesStatus:
    return NotesStatus(jobs=JobCounts(pending=pending), index=IndexCounts(folders, files, 9, 9))


def result(*notes: str) -> SearchResult:
    return SearchResult("owl", Mode.HYBRID, (), 0.0123, notes)


def say(found: Found, state: NotesStatus | None = None, recent: tuple[str, ...] = ()) -> str:
    return nothing(found, state, recent, lambda action: f"<{action}>")


def test_without_a_folder_it_says_how_to_add_one():
    assert "<app.add-folder>" in say(Found(Question("owl")), status(folders=0))


def test_nothing_typed_shows_hints_and_the_newest_queries_first():
    text = say(Found(Question("  ")), status(), tuple(f"q{n}" for n in range(9)))
    assert '"in quotes"' in text
    assert [line.strip() for line in text.splitlines()][-6:] == ["q8", "q7", "q6", "q5", "q4", "q3"]


def test_no_evidence_is_said_in_the_words_of_the_command_line():
    assert (
        say(Found(Question("owl"), result()), status()) == NO_EVIDENCE == "No evidence found for that query."
    )


def test_what_may_be_the_reason_is_said_under_it():
    asked = Question("owl", glob="work/**", folder=Path("/notes"))
    text = say(Found(asked, result("Vectors are being made.")), status(files=1200, pending=34))
    assert text.splitlines()[0] == NO_EVIDENCE
    assert "only work/** in /notes" in text
    assert "1,200 files, 34 waiting" in text
    assert "Vectors are being made." in text


def test_a_path_that_no_file_has_is_the_reason():
    found = replace(result(), path_matches=False)
    asked = Question("owl", glob="wrok/**")
    assert say(Found(asked, found), status()).splitlines() == [
        NO_EVIDENCE,
        "No indexed file matches wrok/**: Esc, then <search.path> and <search.folder> change that.",
    ]
    text = say(Found(replace(asked, folder=Path("/notes")), found), status())
    assert "No indexed file in /notes matches wrok/**: Esc" in text


def test_a_query_that_cannot_be_answered_says_why():
    assert say(Found(Question("x"), problem="Too long.")) == "Too long."


def test_the_summary_counts_and_names_what_narrows():
    asked = Question("owl", Mode.KEYWORD, glob="a/*")
    found = SearchResult("owl", Mode.KEYWORD, (None,) * 3, 0.0123, ("Half the vectors.",))  # type: ignore[arg-type]
    assert summary(asked, found, status(pending=2), 1) == (
        "3 citations in 12 ms · keyword · only a/* · 1 mark · "
        "the index is still being built: 5 files, 2 waiting · Half the vectors."
    )


def test_hostile_queries_and_filters_are_made_visible():
    text = say(Found(Question("")), status(), ("\x1b[2J" + "x" * 500,))
    assert "\x1b" not in text
    assert len(text.splitlines()[-1]) < 80
    assert "\x1b" not in summary(Question("a", glob="\x1b]0;x\x07"), None, None, 0)


def test_a_last_word_is_unfinished_until_a_space_follows():
    assert Question("datab").prefix
    assert not Question("database ").prefix
