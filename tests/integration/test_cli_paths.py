"""Folders and paths as a human names them to the commands: what is taken, and what is refused in which words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests.integration.line import NOTES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.line import Line


def test_drift_takes_paths_of_the_list_and_of_the_disk_and_what_lies_below(
    noctuary: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    noctuary.index()
    noctuary.write("work/new.md", "kingfisher\n")
    (noctuary.notes / "work/plan.md").unlink()
    monkeypatch.chdir(noctuary.notes / "work")
    both = {"work/new.md", "work/plan.md"}
    for named, expected in (
        ("work", both),
        (str(noctuary.notes), both),
        (".", both),
        ("work/plan.md", {"work/plan.md"}),
        (str(noctuary.notes / "work/new.md"), {"work/new.md"}),
        ("new.md", {"work/new.md"}),
        ("log.md", set()),
    ):
        found = noctuary("drift", named, "--json")
        assert found.status == exits.DONE
        assert {row["path"] for row in found.json["rows"]} == expected, named


@pytest.mark.parametrize(
    "arguments",
    [
        ("drift", "/nope"),
        ("drift", "--repair", "/nope"),
        ("drift", "--json", "nope.md"),
        ("drift", "work/plan.md", "nope.md"),
        ("ingest", "--path", "/nope/a.md"),
        ("search", "heron", "--folder", "/nope"),
        ("folders", "remove", "/nope"),
    ],
)
def test_a_path_that_names_nothing_is_an_error_with_the_folders_there_are(
    noctuary: Line, arguments: tuple[str, ...]
) -> None:
    noctuary.index()
    refused = noctuary(*arguments)
    assert (refused.status, refused.out) == (exits.ERROR, "")
    assert "nope" in refused.err
    assert str(noctuary.notes) in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("path", ["nope.md", "nope", "picture.png", ".hidden/a.md"])
def test_ingest_of_what_would_not_be_indexed_says_so(noctuary: Line, path: str) -> None:
    noctuary.index()
    noctuary.write("picture.png", "heron")
    noctuary.write(".hidden/a.md", "heron")
    refused = noctuary("ingest", "--path", str(noctuary.notes / path))
    assert (refused.status, refused.out) == (exits.ERROR, "")
    assert f"{noctuary.notes / path} is " in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("index",),
        ("ingest", "--path"),
        ("folders", "add"),
        ("folders", "remove"),
        ("search", "owl", "--folder"),
        ("watch", "--path"),
    ],
)
def test_a_home_folder_that_is_not_known_is_one_sentence(noctuary: Line, arguments: tuple[str, ...]) -> None:
    refused = noctuary(*arguments, "~nosuchuser/notes")
    assert (refused.status, refused.out) == (exits.ERROR, "")
    assert "Folder: ~nosuchuser/notes names a home folder that is not known." in refused.err


def test_folders_are_listed_added_and_removed(noctuary: Line, tmp_path: Path) -> None:
    assert "No folder of notes yet" in noctuary("folders").out
    assert noctuary("folders", "add", str(noctuary.notes)).status == exits.DONE
    (only,) = noctuary("folders", "--json").json["folders"]
    assert only["path"] == str(noctuary.notes)
    assert noctuary("folders", "--json", "add", str(noctuary.notes)).json["path"] == only["path"]
    wrong = noctuary("folders", "remove", str(tmp_path))
    assert wrong.status == exits.ERROR
    assert str(noctuary.notes) in wrong.err
    assert noctuary("folders", "--json", "remove", str(noctuary.notes)).json == {
        "removed": str(noctuary.notes)
    }
    assert noctuary("folders", "--json").json == {"folders": []}
    assert (noctuary.notes / "log.md").read_text() == NOTES["log.md"]


def test_a_folder_that_is_not_there_is_refused_in_one_sentence(noctuary: Line) -> None:
    for arguments in (("index", "nowhere"), ("folders", "add", "nowhere"), ("ingest", "--path", "nowhere")):
        refused = noctuary(*arguments)
        assert (refused.status, refused.out) == (exits.ERROR, "")
        assert refused.err.startswith("Folder: ")
        assert refused.err.count("\n") == 1


def test_ingest_takes_one_file_or_the_folders_of_the_settings(
    noctuary: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUS_PATH", str(noctuary.notes))
    assert noctuary("ingest", "--no-embed", "--json").json["index"]["files"] == 3
    noctuary.write("log.md", "a spoonbill\n")
    path = str(noctuary.notes / "log.md")
    assert noctuary("ingest", "--path", path, "--no-embed", "--json").json["queued"] == 1
    assert noctuary.search("spoonbill").status == exits.DONE


def test_a_filter_that_is_not_utf8_finds_what_is_shown_so(noctuary: Line) -> None:
    noctuary.index()
    for arguments in (("jobs",), ("jobs", "--status", "vectors")):
        found = noctuary(*arguments, "--filter", "b\udcff", "--json")
        assert found.status == exits.DONE, found
        assert found.json.get("jobs", []) == found.json.get("passages", []) == []
