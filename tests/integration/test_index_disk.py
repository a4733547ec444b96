"""Which files are notes: what is ignored, hidden, linked, no file, or in no folder of ours."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from engine.errors import FolderError, QueryError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.vault import Vault


async def test_only_markdown_that_is_not_hidden_is_indexed(vault: Vault) -> None:
    for path in ("a.md", "b.markdown", "sub/c.MD"):
        vault.write(path, "x\n")
    for path in (".d.md", ".git/e.md", "sub/.obsidian/f.md", "g.txt", "md", "h.md.bak", "i.md~"):
        vault.write(path, "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md", "b.markdown", "sub/c.MD"]


async def test_gitignore_files_hold_below_them_and_the_nearest_decides(vault: Vault) -> None:
    vault.write(".gitignore", "drafts/\n*.tmp.md\n/top.md\n!kept.tmp.md\n# no comment.md\n")
    vault.write("sub/.gitignore", "!allowed.tmp.md\nlocal.md\n")
    out = ["drafts/a.md", "sub/drafts/b.md", "x.tmp.md", "top.md", "sub/local.md", "sub/deep/local.md"]
    kept = ["kept.tmp.md", "sub/allowed.tmp.md", "sub/top.md", "local.md", "drafts.md"]
    for path in (*out, *kept):
        vault.write(path, "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == sorted(kept)
    for path in [*out, "drafts"]:  # named by hand, they are out all the same
        with pytest.raises(FolderError, match="is not indexed: it is hidden, ignored"):
            await vault.notes.ingest(vault.root / path)
    await vault.enqueue(*out)
    await vault.notes.work_until_idle(embed=False)
    assert sorted(await vault.in_index()) == sorted(kept)


async def test_a_note_that_is_ignored_from_now_on_leaves_the_index_and_comes_back(vault: Vault) -> None:
    vault.write("a.md", "x\n")
    vault.write("b.md", "y\n")
    await vault.index()
    vault.write(".gitignore", "b.md\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md"]
    (vault.root / ".gitignore").unlink()
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md", "b.md"]


async def test_lines_of_a_gitignore_that_are_no_pattern_are_passed_over(vault: Vault) -> None:
    vault.write(".gitignore", b"!\n\xff\xfe\ntrailing\\\n\\\n[\nout.md\n")
    vault.write("sub/.gitignore", "\ufefffirst.md\r\n")
    for path in ("out.md", "in.md", "sub/first.md", "sub/second.md"):
        vault.write(path, "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["in.md", "sub/second.md"]


async def test_a_gitignore_above_the_root_holds_up_to_its_repository_only(vault: Vault) -> None:
    above = vault.root.parent
    (above / ".gitignore").write_text("notes/out.md\n")
    for path in ("out.md", "in.md"):
        vault.write(path, "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["in.md", "out.md"], "no repository, so it is no .gitignore"
    (above / ".git").mkdir()
    await vault.index()
    assert sorted(await vault.in_index()) == ["in.md"]


@pytest.mark.parametrize("name", [".gitignore", "pipe.md"])
async def test_a_named_pipe_holds_nobody_up(vault: Vault, name: str) -> None:
    os.mkfifo(vault.root / name)
    vault.write("a.md", "x\n")
    await vault.index()
    await vault.enqueue(name)
    await vault.notes.work_until_idle(embed=False)
    assert sorted(await vault.in_index()) == ["a.md"]
    assert await vault.failures() == {}


async def test_a_folder_called_like_a_note_is_a_folder(vault: Vault) -> None:
    vault.write("dir.md/a.md", "x\n")
    await vault.enqueue("dir.md")  # as an event names it
    await vault.index()
    assert sorted(await vault.in_index()) == ["dir.md/a.md"]
    shutil.rmtree(vault.root / "dir.md")
    vault.write("dir.md", "now a note\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["dir.md"]


async def test_links_to_notes_are_followed_and_links_to_folders_are_not(vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far.md").write_text("far away\n")
    vault.write("a.md", "x\n")
    (vault.root / "file.md").symlink_to(outside / "far.md")
    (vault.root / "folder").symlink_to(outside)
    (vault.root / "loop").symlink_to(vault.root)
    (vault.root / "nothing.md").symlink_to(outside / "nothing.md")
    await vault.index()
    with pytest.raises(FolderError, match="below a link to a folder"):
        await vault.notes.ingest(vault.root / "folder")
    await vault.enqueue("folder/far.md", "loop/a.md")  # as events of the kernel name them
    await vault.notes.work_until_idle(embed=False)
    assert sorted(await vault.in_index()) == ["a.md", "file.md"]
    assert await vault.found("far") == ["file.md"]


async def test_a_link_that_leads_to_itself_is_reported_and_ends(vault: Vault) -> None:
    (vault.root / "self.md").symlink_to("self.md")
    vault.write("a.md", "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md"]
    (row,) = (await vault.notes.drift()).rows
    assert (row.path, "symbolic links" in row.detail) == ("self.md", True)
    await vault.notes.ingest(vault.root / "self.md")
    await vault.notes.work_until_idle(embed=False)
    assert "symbolic links" in (await vault.failures())["self.md"]


async def test_a_name_that_is_not_utf8_is_reported_and_the_others_go_on(vault: Vault) -> None:
    name = os.fsencode(vault.root) + b"/\xffbad.md"
    with open(name, "wb") as opened:  # noqa: PTH123
        opened.write(b"x\n")
    (vault.root / os.fsdecode(b"\xffdir")).mkdir()
    (vault.root / os.fsdecode(b"\xffdir/inside.md")).write_text("x\n")
    vault.write("a.md", "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md"]
    rows = (await vault.notes.drift()).rows
    assert sorted(row.path for row in rows) == ["\\xffbad.md", "\\xffdir/inside.md"]
    assert {row.detail for row in rows} == {"cannot be read: its name is not UTF-8; rename it"}
    with pytest.raises(FolderError, match="Rename it"):
        await vault.notes.ingest(vault.root / os.fsdecode(b"\xffbad.md"))
    with pytest.raises(FolderError, match="Rename it"):
        await vault.notes.ingest(vault.root / os.fsdecode(b"\xffdir"))
    long = vault.root / "l".ljust(200, "l")
    for _ in range(10):
        long = long / "l".ljust(200, "l")
    long.mkdir(parents=True)
    (long / "a.md").write_text("x\n")
    assert len((await vault.notes.drift()).rows) == 3
    assert await vault.notes.repair() == 0, "what no job can mend is not said to be queued"
    for named in (b"\xffbad.md", b"\xffdir", os.fsencode(vault.root) + b"/\xffdir/"):
        assert len((await vault.notes.drift([os.fsdecode(named)])).rows) == 1


async def test_a_path_too_long_for_the_index_is_reported_and_the_others_go_on(vault: Vault) -> None:
    folder = vault.root
    for _ in range(9):
        folder /= "0123456789" * 24
    folder.mkdir(parents=True)
    (folder / "deep.md").write_text("x\n")
    vault.write("a.md", "x\n")
    await vault.index()
    assert sorted(await vault.in_index()) == ["a.md"]
    (row,) = (await vault.notes.drift()).rows
    assert row.detail.startswith("cannot be read: its path has 2,1")


async def test_folders_that_overlap_are_refused(vault: Vault, tmp_path: Path) -> None:
    inside = vault.root / "inside"
    inside.mkdir()
    for other in (inside, vault.root.parent):
        with pytest.raises(FolderError, match="overlaps with"):
            await vault.notes.add_folder(other)
    link = tmp_path / "link"
    link.symlink_to(vault.root)
    assert (await vault.notes.add_folder(link)).id == vault.folder.id, "the same folder by another name"
    sibling = tmp_path / "notes2"  # begins with the same letters and is no part of it
    sibling.mkdir()
    assert (await vault.notes.add_folder(sibling)).path == sibling


async def test_what_is_no_folder_is_refused_with_the_reason(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in (
        ("absent", "does not exist"),
        ("file", "is not a folder"),
        ("loop", "cannot be read"),
    ):
        with pytest.raises(FolderError, match=reason):
            await vault.notes.add_folder(tmp_path / name)
    with pytest.raises(FolderError, match="lies in no indexed folder"):
        await vault.notes.ingest(tmp_path / "loop")


async def test_a_removed_folder_is_forgotten_whole_and_its_disk_is_not_touched(
    vault: Vault, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("shared text\n\nonly here\n")
    vault.write("a.md", "shared text\n")
    await vault.notes.add_folder(other)
    await vault.index()
    await vault.enqueue("b.md")
    folder = next(each for each in await vault.notes.folders() if each.path == other)
    await vault.notes.remove_folder(folder.id)
    assert [each.path for each in await vault.notes.folders()] == [vault.root]
    assert await vault.found("here") == []
    (citation,) = (await vault.notes.search("shared")).citations
    assert (citation.folder, citation.copies) == (vault.root, 0)
    assert (other / "a.md").read_text() == "shared text\n\nonly here\n"
    with pytest.raises(QueryError, match="is not indexed"):
        await vault.notes.search("shared", folder=other)
    await vault.check()


async def test_indexing_never_writes_into_the_folder(vault: Vault) -> None:
    vault.write("a.md", "x\n", mtime=1_000_000_000)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in vault.root.rglob("*")}
    await vault.index()
    await vault.notes.drift()
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in vault.root.rglob("*")} == before
