"""A new note on a real disk: nothing outside, nothing overwritten, nothing half, whatever path is proposed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import WriteError
from engine.notes import disk, newnote
from engine.notes.newpath import Refused, parts
from tests.hostile import PAYLOADS

ROOT = Path(__file__).parents[2]

REFUSED = {
    "is empty": ["", " ", "   "],
    "leads out of its folder": ["../x.md", "a/../../x.md", "a/../x.md", "..", "a/.."],
    "must not begin with / or ~": ["/etc/x.md", "//x.md", "~/x.md", "~root/x.md"],
    "is not written with /": ["a\\b.md", "..\\x.md", "C:/x.md", "c:x.md", "\\\\host\\x.md"],
    "is hidden": [".x.md", ".git/x.md", "a/.b/x.md", "./x.md", "a/./x.md", ".md", "a/.md"],
    "has a name in it that is empty": ["a//x.md", "a/", "a/ /x.md"],
    "begins or ends with a blank": ["a /x.md", " x.md", "x.md ", "a./x.md", "x.md.", "a/ x.md"],
    "must end with .md": ["x", "x.txt", "x.md/y", "a/x.mdx", "x.md.sh"],
    "cannot be seen": [
        "a\0.md", "a\n.md", "a\t.md", "a\x1b[2J.md", "a\x7f.md", "a\x85.md", "a\u202e.md", "a\u200b.md", "\ufeffa.md",
        "a\udcff.md", "a\ud800.md", "a\u2028.md", "a\ue000.md",
    ],
    "too long": ["x" * 253 + ".md", "é" * 127 + ".md", "/".join(["d" * 200] * 11) + "/x.md", "a/" * 16 + "x.md"],
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of notes with links out of it, beside what nobody may touch."""
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "secret.md").write_text("secret\n")
    root = tmp_path / "notes"
    (root / "topics").mkdir(parents=True)
    (root / "topics" / "owls.md").write_text("owls\n")
    (root / "topics" / "Ärger.md").write_text("trouble\n")
    (root / "folder.md").mkdir()
    (root / "file").write_text("no folder\n")
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "topics" / "deep").symlink_to(outside / "inner", target_is_directory=True)
    (root / "dangling.md").symlink_to(outside / "new.md")
    (root / "linked.md").symlink_to(outside / "secret.md")
    (root / ".gitignore").write_text("private/\n*.draft.md\n")
    return root


def tree(top: Path) -> dict[str, bytes]:
    """Every file and folder below, each with what it holds."""
    found = {}
    for parent, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = Path(parent) / name
            if path.is_symlink():
                held = str(path.readlink()).encode()
            else:
                held = b"" if path.is_dir() else path.read_bytes()
            found[str(path.relative_to(top))] = held
    return found


def refusal(root: Path, path: str, text: str = "# New\n") -> str:
    """The sentence with which a note is refused, which leaves everything as it was, also for a dry run."""
    before = tree(root.parent)
    with pytest.raises(Refused) as told:
        newnote.create(root, path, text)
    assert tree(root.parent) == before
    if text == "# New\n":
        with pytest.raises(Refused):
            newnote.check(root, path)
    assert not any("\ud800" <= letter <= "\udfff" or letter < " " for letter in str(told.value))
    return str(told.value)


@pytest.mark.parametrize(
    ("sentence", "path"), [(sentence, path) for sentence, paths in REFUSED.items() for path in paths]
)
def test_a_path_that_is_none_within_the_folder_is_refused(root: Path, sentence: str, path: str) -> None:
    assert sentence in refusal(root, path)


@pytest.mark.parametrize(
    "path", ["link/x.md", "up/x.md", "topics/deep/x.md", "link/inner/x.md", "up/outside/x.md"]
)
def test_no_link_is_followed(root: Path, path: str) -> None:
    assert "through a link" in refusal(root, path)


@pytest.mark.parametrize("path", ["private/x.md", "private/a/b/x.md", "x.draft.md", "topics/x.draft.md"])
def test_what_git_ignores_would_not_be_indexed(root: Path, path: str) -> None:
    assert "is ignored by a .gitignore" in refusal(root, path)


@pytest.mark.parametrize(
    "path",
    [
        "topics/owls.md", "topics/OWLS.md", "topics/owls.MD", "Topics/owls.md", "TOPICS/new.md",
        "topics/a\u0308rger.md", "topics/ÄRGER.md", unicodedata.normalize("NFD", "topics/Ärger.md"),
        "folder.md", "FOLDER.MD", "dangling.md", "linked.md",
    ],
)  # fmt: skip
def test_what_exists_is_never_overwritten_by_whatever_case_or_form(root: Path, path: str) -> None:
    assert "exists already" in refusal(root, path)


def test_a_file_is_no_folder(root: Path) -> None:
    assert "is no folder" in refusal(root, "file/x.md")
    assert "is no folder" in refusal(root, "topics/owls.md/x.md")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"), (" \n\n", "is empty"), ("a\0b", "U+0000"), ("a\x1b[2J", "U+001B"), ("a\x9bb", "U+009B"),
        ("a\udcff", "halves"), ("x" * (256 * 1024 + 1), "longer than 256 KiB"),
    ],
)  # fmt: skip
def test_a_text_that_is_none_is_refused(root: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(root, "new.md", text)


@pytest.mark.parametrize(
    ("given_text", "written"),
    [("# A", "# A\n"), ("# A\r\nb\rc\n\n\n", "# A\nb\nc\n"), ("\ttab é 日本\n", "\ttab é 日本\n")],
)
def test_a_note_is_written_with_one_end_of_line(root: Path, given_text: str, written: str) -> None:
    assert newnote.create(root, "new/deep/a b.md", given_text) == "new/deep/a b.md"
    assert (root / "new/deep/a b.md").read_bytes() == written.encode()
    assert stat.S_IMODE((root / "new/deep/a b.md").stat().st_mode) & 0o111 == 0
    assert (root / "new/deep/a b.md").stat().st_nlink == 1


def test_a_name_is_written_in_its_composed_form(root: Path) -> None:
    assert newnote.create(root, unicodedata.normalize("NFD", "Übung/é.md"), "x") == "Übung/é.md"
    assert (root / "Übung/é.md").is_file()


def test_a_dry_run_writes_nothing(root: Path) -> None:
    before = tree(root)
    assert newnote.check(root, "new/deep/x.md") == "new/deep/x.md"
    assert newnote.check(root, "topics/x.md") == "topics/x.md"
    assert tree(root) == before


PIECES = st.sampled_from(
    ["..", ".", "", "topics", "link", "up", "deep", "outside", "notes", "inner", "secret.md", "x.md", "dangling.md",
     "linked.md", "file", "Topics", "\\..", "~", "a\0", "\u2024\u2024", "\uff0e\uff0e", "%2e%2e", "a", "\u2215",
     *PAYLOADS.values()]
)  # fmt: skip
PATHS = st.one_of(
    st.lists(PIECES, min_size=1, max_size=5).map("/".join),
    st.lists(st.one_of(PIECES, st.text(max_size=4)), min_size=1, max_size=4).map(
        lambda each: "/".join(each) + ".md"
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(path=PATHS)
def test_no_path_ever_changes_what_there_is_or_lands_outside(root: Path, path: str) -> None:
    before = tree(root.parent)
    try:
        written = newnote.create(root, path, "# New\n")
    except Refused:
        assert tree(root.parent) == before
        return
    after = tree(root.parent)
    new = {name for name in after if name not in before}
    assert {name: after[name] for name in before} == before
    assert f"notes/{written}" in new
    assert all(f"notes/{written}".startswith(name) for name in new)
    assert disk.listing(root).files[written].size == 6, "what is written is what is indexed"
    assert parts(written)
    (root / written).unlink()
    for parent in (root / written).parents:
        if str(parent.relative_to(root.parent)) in before:
            break
        parent.rmdir()


def test_a_link_that_appears_on_the_way_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is exchanged for a link between the look and the step into it."""
    looked = disk.excluded

    def exchanged(top: Path, path: str) -> bool:
        found = looked(top, path)
        (root / "topics").rename(root / "topics.before")
        (root / "topics").symlink_to(root.parent / "outside")
        return found

    monkeypatch.setattr(disk, "excluded", exchanged)
    with pytest.raises(Refused, match="is no folder"):
        newnote.create(root, "topics/x.md", "x")
    assert sorted(tree(root.parent / "outside")) == ["inner", "secret.md"]


def test_a_name_that_is_taken_at_the_last_moment_is_not_overwritten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken() -> bool:
        (root / "x.md").write_text("theirs\n")
        return False

    with pytest.raises(Refused, match="exists already"):
        newnote.create(root, "x.md", "ours", taken)
    assert (root / "x.md").read_text() == "theirs\n"
    assert not [name for name in tree(root) if name.endswith(".tmp")]


@pytest.mark.parametrize("paths", [["x/y/n.md"] * 8, ["x/n.md", "X/n.md", "x/N.md", "x/n.MD"] * 2])
def test_of_several_writers_of_one_name_exactly_one_gets_it(root: Path, paths: list[str]) -> None:
    def one(number: int) -> int | None:
        try:
            newnote.create(root, paths[number], f"{number}\n")
        except Refused:
            return None
        return number

    with ThreadPoolExecutor(len(paths)) as pool:
        won = [number for number in pool.map(one, range(len(paths))) if number is not None]
    assert len(won) == 1
    assert (root / paths[won[0]]).read_text() == f"{won[0]}\n"


def test_what_is_called_off_or_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(root)
    with pytest.raises(WriteError, match="called off"):
        newnote.create(root, "new/deep/x.md", "x", lambda: True)
    assert tree(root) == before

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "link"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(WriteError, match="No space left on device") as told:
                newnote.create(root, "new/deep/x.md", "x")
        assert not isinstance(told.value, Refused)
        assert tree(root) == before


def test_a_file_system_without_hard_links_overwrites_nothing_either(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    assert newnote.create(root, "new/x.md", "x") == "new/x.md"
    assert (root / "new/x.md").read_text() == "x\n"

    def taken() -> bool:
        (root / "y.md").write_text("theirs\n")
        return False

    with pytest.raises(Refused, match="exists already"):
        newnote.create(root, "y.md", "ours", taken)
    assert (root / "y.md").read_text() == "theirs\n"


def test_a_file_system_without_locks_is_written_to_and_not_cleared(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    theirs = root / ".noctuary-0123456789abcdef.tmp"
    theirs.write_text("another writer's, who may be at work\n")
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", none)
        assert newnote.create(root, "x.md", "x") == "x.md"
    assert theirs.exists()
    assert newnote.create(root, "y.md", "y") == "y.md"
    assert not theirs.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from engine.notes import newnote
at, root = sys.argv[1], Path(sys.argv[2])
def killed(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
setattr(os, at, killed)
newnote.create(root, "new/x.md", "# Whole" + "x" * 100_000)
"""


@pytest.mark.parametrize("at", ["fsync", "link", "mkdir"])
def test_a_writer_that_is_killed_leaves_at_most_what_is_never_indexed_and_the_next_clears(
    root: Path, at: str
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, at, root], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    left = [name for name in tree(root) if name.endswith(".tmp")]
    assert len(left) == 1
    assert not (root / "new/x.md").exists()
    assert not [path for path in disk.listing(root).files if "tmp" in path or path.startswith("new")]
    assert newnote.create(root, "new/x.md", "x") == "new/x.md"
    assert not [name for name in tree(root) if name.endswith(".tmp")]


def test_a_folder_that_is_gone_or_closed_is_told(root: Path) -> None:
    with pytest.raises(WriteError, match="could not be written: No such file") as told:
        newnote.create(root.parent / "gone", "x.md", "x")
    assert not isinstance(told.value, Refused)


def test_a_writer_that_hangs_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newnote, "PATIENCE", 0.05)
    held = os.open(root, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(WriteError, match="Another writer"):
        newnote.create(root, "x.md", "x")
    os.close(held)
    assert newnote.create(root, "x.md", "x") == "x.md"
