"""The command line before it opens anything: names, help, usage errors, and what a value looks like as JSON."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.doors import cli, exits, output
from engine.doors.cli import COMMANDS
from engine.errors import FolderError
from engine.notes.model import Citation, JobStatus
from tests.command_tree import commands
from tui.main import _checked, console

SPEAK_JSON_ALONE = {"mcp"}
"""Commands that print nothing for people."""


@pytest.fixture(autouse=True)
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for name in ("DATA", "CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_and_option_has_help_and_a_json_twin(name: str, command: click.Command) -> None:
    assert command.get_short_help_str(200).endswith("."), name
    options = [item for item in command.params if isinstance(item, click.Option)]
    assert all(option.help for option in options)
    assert any("--json" in option.opts for option in options) or name in SPEAK_JSON_ALONE


def test_help_lists_every_command_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"], console=console) == exits.DONE
    shown = capsys.readouterr().out
    for name in ("open", *COMMANDS):
        assert f"\n  {name} " in shown


def test_a_misspelt_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["serach", "x"], console=console) == exits.ERROR
    said = capsys.readouterr()
    assert said.out == ""
    assert "Did you mean `noctuary search`?" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["search"],
        ["search", "--k", "0", "x"],
        ["search", "--max-distance", "3", "x"],
        ["search", "--mode", "guess", "x"],
        ["jobs", "--status", "lost"],
        ["jobs", "--limit", "-1"],
        ["retry", "99999999999999999999"],
        ["retry", "x"],
        ["nothing-like-it"],
        ["./nowhere"],
        ["config", "extra"],
        ["search", ""],
        ["ask"],
        ["ask", "--k", "0", "x"],
        ["ask", " ", " "],
        ["search", " ", " "],
    ],
)
def test_a_wrong_use_is_one_sentence_and_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert cli.run(arguments, console=console) == exits.ERROR
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


EMPTY = [
    ("search", "x", "--path"),
    ("search", "x", "--heading"),
    ("search", "x", "--folder"),
    ("ask", "x", "--path"),
    ("jobs", "--filter"),
    ("drift",),
    ("index",),
    ("ingest", "--path"),
    ("watch", "--path"),
    ("folders", "add"),
    ("folders", "remove"),
]


@pytest.mark.parametrize("arguments", EMPTY)
def test_an_empty_value_is_neither_everything_nor_the_working_folder(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*arguments, ""], console=console) == exits.ERROR
    said = capsys.readouterr()
    assert said.out == ""
    assert "it is empty. Give it a value or leave it out." in said.err
    assert said.err.count("\n") == 1


def test_an_empty_folder_is_not_the_working_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([""], console=console) == exits.ERROR
    assert "'' is neither a command nor a folder." in capsys.readouterr().err
    with pytest.raises(FolderError, match="is empty"):
        _checked("")


NEEDS = {
    "search": ["x"],
    "ask": ["x"],
    "folders add": ["."],
    "folders remove": ["."],
    "ingest": ["--path", "."],
    "recall": ["x"],
    "remember": ["x"],
    "prepare": ["x"],
    "verify": ["x"],
    "record": ["--token", "x", "x"],
    "cores add": ["x"],
    "import": ["jsonl", "."],
    "lessons show": ["L1"],
    "lessons delete": ["L1", "--yes"],
    "lessons lift": ["L1"],
    "lessons edit": ["L1", "x"],
    "lessons pin": ["L1"],
    "lessons unpin": ["L1"],
    "synthesize distil": ["1", "x"],
}

NEVER_FAIL = {"hook claude-code"}
"""Commands by which an agent would be held up."""

HOOK = '{"hook_event_name": "Stop", "transcript_path": "x.jsonl"}'


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_with_json_an_error_leaves_standard_output_empty_or_valid(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (
        ("NOCTUARY_DATABASE_URL", "postgresql://u:p@127.0.0.1:1/none"),
        ("NOCTUARY_WATCH", "sometimes"),
        ("XDG_STATE_HOME", "relative"),
    ):
        monkeypatch.setenv(variable, value)
        for arguments, expected in (
            (["--json"], exits.DONE if name in NEVER_FAIL else exits.ERROR),
            (["--json", "--no-such-option"], exits.ERROR),
        ):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(HOOK.encode())))
            status = cli.run([*name.split(), *NEEDS.get(name, []), *arguments])
            said = capsys.readouterr()
            assert said.out == "" or json.loads(said.out), arguments
            assert said.out or (status, said.err.count("\n")) == (expected, 1), arguments


def test_a_hostile_argument_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["\x1b]52;c;aGk=\x07\u202etxt"], console=console) == exits.ERROR
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_the_console_is_refused_without_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.run([str(tmp_path)], console=console) == exits.ERROR
    assert "needs a terminal" in capsys.readouterr().err


def test_without_the_console_no_words_mean_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == exits.DONE
    assert "Commands:" in capsys.readouterr().out


def test_version_and_locate_need_no_valid_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EMBEDDINGS_PROVIDER", "ollama")
    assert cli.run(["version", "--json"]) == exits.DONE
    assert "noctuary" in json.loads(capsys.readouterr().out)
    assert cli.run(["locate", "--json"]) == exits.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["data"] == str(tmp_path / "data" / "noctuary")
    assert found["settings"] == str(tmp_path / "config" / "noctuary" / "config.toml")
    assert not (tmp_path / "data").exists()


def test_config_shows_values_sources_cautions_and_no_secret(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        "DATABASE_URL=postgresql://app:hunter2@db/shop\nOPENAI_API_KEY=sk-hunter3\nSHOP_NAME=hunter4\n"
    )
    assert cli.run(["config"]) == exits.DONE
    text = capsys.readouterr().out
    assert cli.run(["config", "--json"]) == exits.DONE
    raw = capsys.readouterr().out
    for shown in (text, raw):
        assert "hunter" not in shown
        assert f"{tmp_path / '.env'}:1 (DATABASE_URL)" in shown
        assert "NOCTUARY_DATABASE_URL=embedded" in shown
        assert "SHOP_NAME" in shown
    assert json.loads(raw)["settings"]["openai_api_key"]["value"] == "***"


def test_config_shows_what_holds_when_nothing_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name == "nano" else None)
    assert cli.run(["config"]) == exits.DONE
    shown = [line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:4]]
    assert {source for _, source in shown} == {"default"}
    assert shown[0][0].split() == ["database_url", "embedded"]
    assert cli.run(["config", "--json"]) == exits.DONE
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings["editor"]["value"] == "nano"
    assert settings["embeddings_model"]["value"] == "the provider's own"
    assert settings["retrieval_max_distance"]["value"] == "the model's own"


def test_the_example_is_json_when_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "--example", "--json"]) == exits.DONE
    assert "# watch = " in json.loads(capsys.readouterr().out)["example"]


def test_an_invalid_setting_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_PROVIDER", "cloud")
    assert cli.run(["config"]) == exits.ERROR
    said = capsys.readouterr()
    assert said.err.startswith("Setting: embeddings_provider is 'cloud'")
    assert said.err.count("\n") == 1


def test_the_log_is_read_newest_last_and_a_torn_line_is_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "noctuary" / "noctuary.log"
    file.parent.mkdir(parents=True)
    lines = [
        {"at": "2026-01-01T00:00:00+00:00", "level": level, "source": "worker", "text": f"{level} \x1b[2J"}
        for level in ("info", "warning", "error")
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"at": "2026-01', encoding="utf-8")
    assert cli.run(["log", "--level", "warning"]) == exits.DONE
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in shown] == ["warning", "error"]
    assert not any("\x1b" in line for line in shown)
    assert cli.run(["log", "--json", "--limit", "1"]) == exits.DONE
    assert json.loads(capsys.readouterr().out) == {"log": [lines[-1]]}


def test_a_log_that_cannot_be_read_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.run(["log"]) == exits.DONE
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"No log yet: {tmp_path}/state/noctuary/noctuary.log.\n")
    (tmp_path / "state").write_text("a file where the folder should be")
    for arguments in (["log"], ["log", "--json"]):
        assert cli.run(arguments) == exits.ERROR
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"Log: {tmp_path}/state/noctuary/noctuary.log cannot be read: Not a dir")
    (tmp_path / "state").unlink()
    (tmp_path / "state/noctuary").mkdir(parents=True)
    os.mkfifo(tmp_path / "state/noctuary/noctuary.log")
    assert cli.run(["log"]) == exits.ERROR
    assert "noctuary.log is not a file." in capsys.readouterr().err


def test_a_line_of_the_log_that_is_no_record_is_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "noctuary" / "noctuary.log"
    file.parent.mkdir(parents=True)
    whole = {"at": "2026-01-01T00:00:00+00:00", "level": "info", "source": "worker", "text": "done"}
    torn = [[], 1, {}, {**whole, "at": "yesterday"}, {**whole, "text": None}, {**whole, "at": 7}]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*torn, whole]), encoding="utf-8")
    assert cli.run(["log"]) == exits.DONE
    assert capsys.readouterr().out.count("\n") == 1


@dataclass(frozen=True)
class Sample:
    number: float
    path: Path
    at: datetime
    status: JobStatus
    names: tuple[str, ...]


@given(st.floats(), st.text())
def test_json_is_strict_and_plain_ascii(number: float, text: str) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    sample = Sample(number, Path("/a"), at, JobStatus.DONE, (text,))
    written = json.dumps(output.plain({"sample": sample}), allow_nan=False)
    assert written.isascii()
    read = json.loads(written)["sample"]
    assert read["names"] == [text]
    assert read["status"] == "done"
    assert read["at"] == "2026-01-02T00:00:00+00:00"
    assert read["number"] is None or read["number"] == number


def test_json_holds_no_half_of_a_surrogate_pair() -> None:
    written = json.dumps(output.plain({"\udcff": Path("b\udcffad.md"), "x": "\ud800"}))
    assert json.loads(written) == {"\\xff": "b\\xffad.md", "x": "\\ud800"}


def test_a_citation_as_json_begins_with_the_names_of_knowman() -> None:
    from engine.doors.commands.search import as_object
    from engine.notes.model import Freshness, FreshnessState

    citation = Citation(Path("/n"), "a.md", 3, 5, "text", 0.25, 1.0)
    found = as_object(citation, Freshness(FreshnessState.SAME), explain=False)
    assert list(found)[:5] == ["path", "line_start", "line_end", "text", "distance"]
    assert "explanation" not in found


def test_columns_line_up_whatever_the_width_of_the_letters(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([("日本", "x"), ("ab\u0301", "y"), ("a\nb", "z")])
    assert capsys.readouterr().out.split("\n")[:3] == ["日本  x", "ab\u0301    y", "a␊b   z"]
