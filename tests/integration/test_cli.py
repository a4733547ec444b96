"""The commands on a real database: what they print, as text and as JSON, and their exit statuses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.doors import exits
from tests.integration.line import NOTES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.line import Line


def test_index_then_search_cites_lines_and_indents_the_passage(noctuary: Line) -> None:
    assert noctuary.index().json["index"]["files"] == 3
    found = noctuary.search("ford")
    assert found.status == exits.DONE
    assert found.out.startswith("log.md:L1-L3\n    # Log\n\n    The heron stood in the ford.\n")


def test_nothing_found_is_said_and_is_status_1(noctuary: Line) -> None:
    noctuary.index()
    found = noctuary.search("zebra")
    assert (found.status, found.out) == (exits.FOUND_NOTHING, "No evidence found for that query.\n")
    found = noctuary.search("zebra", "--json")
    assert (found.status, found.json) == (exits.FOUND_NOTHING, {"citations": []})


def test_a_path_that_no_file_has_is_said(noctuary: Line) -> None:
    noctuary.index()
    found = noctuary.search("heron", "--path", "wrok/\n*")
    assert (found.status, found.out) == (exits.FOUND_NOTHING, "No evidence found for that query.\n")
    assert found.err.startswith(r"No indexed file matches --path 'wrok/\n*'. The pattern is of paths within")
    found = noctuary.search("heron", "--path", "log.md", "--folder", str(noctuary.notes / "work"))
    assert found.err.startswith(f"No indexed file in {noctuary.notes / 'work'} matches --path 'log.md'.")
    found = noctuary.search("heron", "--path", "wrok/*", "--json")
    assert (found.status, found.json) == (exits.FOUND_NOTHING, {"citations": [], "path_matches": False})
    found = noctuary.search("zebra", "--path", "work/*", "--json")
    assert (found.status, found.json) == (exits.FOUND_NOTHING, {"citations": [], "path_matches": True})
    assert found.err == ""


def test_without_any_folder_search_says_what_to_do(noctuary: Line) -> None:
    for options in ([], ["--path", "work/*"]):
        found = noctuary.search("heron", *options)
        assert found.status == exits.FOUND_NOTHING
        assert found.err == "No folder of notes yet. `noctuary index FOLDER` reads one.\n"


def test_search_options_reach_the_engine(noctuary: Line) -> None:
    noctuary.index()
    everything = noctuary.search("heron", "--json", "--k", "10").json["citations"]
    assert {hit["path"] for hit in everything} == {"log.md", "work/plan.md"}
    assert len(noctuary.search("heron", "--json", "--k", "1").json["citations"]) == 1
    in_work = noctuary.search("heron", "--json", "--k", "10", "--path", "work/**").json["citations"]
    assert {hit["path"] for hit in in_work} == {"work/plan.md"}
    evening = noctuary.search("heron", "--json", "--k", "10", "--heading", "Evening").json["citations"]
    assert [hit["line_start"] for hit in evening] == [5]
    here = noctuary.search("heron", "--json", "--k", "10", "--folder", str(noctuary.notes)).json["citations"]
    assert here == everything
    phrase = noctuary.search('"second heron"', "--json", "--k", "10").json["citations"]
    assert [hit["line_start"] for hit in phrase] == [5]


def test_words_of_a_query_need_no_quotes_of_the_shell(noctuary: Line) -> None:
    noctuary.index()
    assert noctuary.search("lantern", "walk").out == noctuary.search("lantern walk").out


def test_explain_shows_rank_and_score_in_each_list(noctuary: Line) -> None:
    noctuary.index()
    text = noctuary.search("ford", "--explain").out
    assert "keyword  rank 1, score " in text
    assert "vector   not in this list" in text
    assert f"folder   {noctuary.notes}" in text
    (hit,) = noctuary.search("ford", "--explain", "--json").json["citations"]
    assert hit["explanation"]["keyword_rank"] == 1
    assert hit["explanation"]["vector_rank"] is None


def test_a_citation_that_is_no_longer_true_says_so(noctuary: Line) -> None:
    noctuary.index()
    noctuary.write("log.md", "\n\n" + NOTES["log.md"])
    assert noctuary.search("ford").out.startswith("log.md:L1-L3  (moved to L3-L5)\n")
    noctuary.write("log.md", "other words\n")
    assert noctuary.search("ford", "--json").json["citations"][0]["freshness"]["state"] == "changed"
    (noctuary.notes / "log.md").unlink()
    assert noctuary.search("ford").out.startswith("log.md:L1-L3  (gone)\n")


def test_meaning_is_found_once_vectors_are_made(noctuary: Line) -> None:
    assert noctuary("index", str(noctuary.notes)).status == exits.DONE
    found = noctuary("search", "a wading bird at the river", "--mode", "vector", "--k", "1", "--json")
    (hit,) = found.json["citations"]
    assert hit["path"] == "log.md"
    assert 0 < hit["distance"] < 1
    far = noctuary("search", "a wading bird at the river", "--mode", "vector", "--max-distance", "0.01")
    assert far.status == exits.FOUND_NOTHING


def test_hostile_text_is_shown_and_never_sent(noctuary: Line) -> None:
    noctuary.write("e\x1b[2Jvil [/b].md", "heron \x1b]52;c;aGk=\x07 \x9b2J \u202e [/x] [b\n")
    noctuary.index()
    for arguments in (
        ("search", "heron", "--k", "9", "--mode", "keyword", "--explain"),
        ("jobs",),
        ("drift",),
    ):
        shown = noctuary(*arguments)
        assert shown.status == exits.DONE
        assert not any(mark in shown.out + shown.err for mark in "\x1b\x07\x9b\u202e")
    assert "[/x] [b" in noctuary.search("heron", "--k", "9").out


def test_a_search_by_meaning_before_there_are_vectors_says_why_it_finds_nothing(noctuary: Line) -> None:
    noctuary.index()
    found = noctuary("search", "heron", "--mode", "vector")
    assert (found.status, found.out) == (exits.FOUND_NOTHING, "No evidence found for that query.\n")
    assert "Vectors are still being made: 3 passages wait for vectors" in found.err


def test_jobs_lists_the_passages_without_a_vector_and_retry_takes_them(
    noctuary: Line, database_url: str
) -> None:
    noctuary.index()
    fail = "UPDATE noctuary.embedding SET state = 'failed', error = 'too \x1b odd' WHERE passage = 1"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(fail.encode())
    listed = noctuary("jobs", "--status", "vectors", "--json").json
    (passage,) = listed["passages"]
    assert (listed["failed"], passage["id"], passage["error"]) == (1, 1, "too \x1b odd")
    said = noctuary("jobs", "--status", "vectors").out
    assert f"1: {passage['path']}:L{passage['line_start']}-L{passage['line_end']}: too ␛ odd\n" in said
    unknown = noctuary("retry", "--vectors", "1", "99", "--json")
    assert (unknown.status, unknown.out) == (exits.ERROR, "")
    assert unknown.err.startswith("Retry: The model did not fail on a passage 99.")
    assert noctuary("jobs", "--status", "vectors", "--json").json["failed"] == 1, "nothing was tried"
    assert noctuary("retry", "--vectors", "1", "--json").json["queued"] <= 1
    assert noctuary("jobs", "--status", "vectors", "--json").json["passages"] == []


def test_status_tells_who_watches_and_when_it_last_gave_a_sign_of_life(
    noctuary: Line, database_url: str
) -> None:
    noctuary.index()
    assert f"{noctuary.notes}: not watched.\n" in noctuary("status").out
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO noctuary.watcher SELECT id, 'host:1', 'polling', 'nfs gives no file events' FROM noctuary.folder"
        )
        said = noctuary("status")
        assert f"{noctuary.notes}: polling (nfs gives no file events) by host:1, sign of life " in said.out
        (watcher,) = noctuary("status", "--json").json["watchers"]
        assert (watcher["mode"], watcher["holder"], watcher["process"]) == ("elsewhere", "polling", "host:1")
        assert watcher["beat"]
        connection.execute("UPDATE noctuary.watcher SET beat_at = now() - interval '10 minutes'")
    assert f"{noctuary.notes}: not watched; host:1 was silent for 10 min.\n" in noctuary("status").out


def test_jobs_shows_failures_in_full_and_retry_mends_them(noctuary: Line) -> None:
    noctuary.write("bad.md", b"\xff\xfeh\x00i\x00")
    assert noctuary.index(exits.ERROR).json["jobs"]["failed"] == 1
    failed = noctuary("jobs", "--status", "failed", "--json").json
    assert [job["path"] for job in failed["jobs"]] == ["bad.md"]
    assert failed["counts"]["failed"] == 1
    assert failed["jobs"][0]["error"] in noctuary("jobs", "--status", "failed").out
    assert noctuary("jobs", "--filter", "no-such-path", "--json").json["jobs"] == []
    assert len(noctuary("jobs", "--limit", "2", "--json").json["jobs"]) == 2
    mixed = noctuary("retry", str(failed["jobs"][0]["id"]), "99999")
    assert (mixed.status, mixed.out) == (exits.ERROR, "")
    assert noctuary("jobs", "--json").json["counts"]["pending"] == 0, "nothing was queued"
    noctuary.write("bad.md", "mended osprey\n")
    assert noctuary("retry", str(failed["jobs"][0]["id"]), "--json").json["queued"] == 1
    assert noctuary.search("osprey").status == exits.DONE
    done = failed["jobs"][0]["id"]
    wrong = noctuary("retry", str(done), "99999", "--json")
    assert (wrong.status, wrong.out) == (exits.ERROR, "")
    assert wrong.err.startswith(f"Retry: Job {done} has not failed: it is done. There is no job 99999. `noc")
    assert wrong.err.count("\n") == 1


def test_drift_shows_causes_and_repair_mends_all_or_some(noctuary: Line) -> None:
    noctuary.index()
    assert "No drift." in noctuary("drift").out
    noctuary.write("new.md", "kingfisher\n")
    noctuary.write("log.md", "changed altogether\n")
    (noctuary.notes / "work/plan.md").unlink()
    found = noctuary("drift", "--json").json
    counts = {cause: number for cause, number in found["counts"].items() if number}
    assert counts == {"not_indexed": 1, "changed": 1, "orphaned": 1}
    assert {row["path"] for row in found["rows"]} == {"new.md", "log.md", "work/plan.md"}
    assert noctuary("drift", "new.md", "--repair", "--json").json["queued"] == 1
    assert noctuary.search("kingfisher").status == exits.DONE
    assert {row["path"] for row in noctuary("drift", "--json").json["rows"]} == {"log.md", "work/plan.md"}
    assert noctuary("drift", "--repair").status == exits.DONE
    assert noctuary("drift", "--json").json["rows"] == []


def test_drift_of_some_paths_counts_those_and_says_once_what_is_kept(noctuary: Line) -> None:
    noctuary.index()
    noctuary.write("new.md", "kingfisher\n")
    noctuary.write("log.md", "changed altogether\n")
    some = noctuary("drift", "new.md", "--json").json
    assert {cause: number for cause, number in some["counts"].items() if number} == {"not_indexed": 1}
    assert "changed" not in noctuary("drift", "new.md").out
    noctuary.notes.rename(noctuary.notes.with_name("elsewhere"))
    assert noctuary("drift").out.count("kept") == 1


def test_what_failed_or_was_kept_away_is_status_2_and_told(
    noctuary: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noctuary.write("bad.md", b"\xff\xfeh\x00i\x00")
    for arguments in (("index", str(noctuary.notes), "--no-embed"), ("retry",), ("drift", "--repair")):
        ended = noctuary(*arguments)
        assert ended.status == exits.ERROR
        assert ended.err.startswith("Notes: 1 job failed. `noctuary jobs --status failed` shows why")
        assert "shows why" not in ended.out
    (noctuary.notes / "bad.md").unlink()
    monkeypatch.setenv("CORPUS_PATH", os.pathsep.join([str(tmp_path / "unmounted"), str(noctuary.notes)]))
    noctuary.write("new.md", "kingfisher\n")
    for command in ("index", "ingest"):
        ended = noctuary(command)
        assert ended.status == exits.ERROR
        assert ended.err.startswith("Folder: The folder ")
        assert ended.err.count("\n") == 1
    assert noctuary.search("kingfisher").status == exits.DONE
    monkeypatch.delenv("CORPUS_PATH")
    assert noctuary("index").status == exits.DONE


def test_status_inbox_and_db_init_tell_the_state(noctuary: Line) -> None:
    noctuary.write("bad.md", b"\xff\xfeh\x00i\x00")
    noctuary.index(exits.ERROR)
    assert noctuary("status", "--json").json["jobs"]["failed"] == 1
    assert "1 failed" in noctuary("status").out
    noctuary.write("new.md", "x\n")
    kinds = {item["kind"]: item["count"] for item in noctuary("inbox", "--json").json["items"]}
    assert kinds["failed_jobs"] == 1
    assert kinds["not_indexed"] == 1
    assert "could not be indexed" in noctuary("inbox").out
    assert noctuary("db-init", "--json").json["embedded"] is False
    assert "PostgreSQL" in noctuary("db-init").out


def test_doctor_finds_a_healthy_installation_healthy(noctuary: Line) -> None:
    noctuary.index()
    checked = noctuary("doctor", "--json")
    assert checked.status == exits.DONE, checked.out
    states = {(check["name"], check["state"]) for check in checked.json["checks"]}
    assert {("database", "ok"), ("model", "ok"), ("folder", "ok"), ("watching", "ok")} <= states
    assert "fail" not in {state for _, state in states}


def test_doctor_names_what_is_broken_and_goes_on(noctuary: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", "postgresql://u:hunter2@127.0.0.1:1/none")
    monkeypatch.setenv("NOCTUARY_EDITOR", "no-such-editor")
    checked = noctuary("doctor")
    assert checked.status == exits.ERROR
    assert "fail  database: " in checked.out
    assert "warn  editor: no-such-editor is not installed." in checked.out
    assert "ok    model: " in checked.out
    assert "hunter2" not in checked.out + checked.err


def test_doctor_names_the_state_folder_that_cannot_be_made_once(noctuary: Line, tmp_path: Path) -> None:
    (tmp_path / "xdg").mkdir()
    (tmp_path / "xdg/state").write_text("in the way")
    checked = noctuary("doctor", "--json")
    assert checked.status == exits.ERROR
    failed = [check for check in checked.json["checks"] if check["state"] == "fail"]
    assert [check["name"] for check in failed] == ["state folder"]
    assert str(tmp_path / "xdg/state/noctuary") in failed[0]["sentence"]
    assert failed[0]["remedy"]
    assert "Not tried: it needs the state folder." in noctuary("doctor").out


@pytest.mark.parametrize("part", ["data", "state"])
def test_doctor_names_a_folder_whose_name_is_too_long_for_the_disk(
    noctuary: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv(f"XDG_{part.upper()}_HOME", str(tmp_path / ("n" * 300)))
    for options in ((), ("--fix",)):
        checked = noctuary("doctor", *options)
        assert checked.status == exits.ERROR
        assert f"fail  {part} folder: " in checked.out
        assert "File name too long" in checked.out
        assert "ok    model: " in checked.out, "it goes on"


def test_a_database_that_is_not_there_is_one_sentence(
    noctuary: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", "postgresql://u:hunter2@127.0.0.1:1/none")
    refused = noctuary("search", "x")
    assert (refused.status, refused.out) == (exits.ERROR, "")
    assert refused.err.startswith("Database unavailable: ")
    assert "hunter2" not in refused.err
    assert refused.err.count("\n") == 1
