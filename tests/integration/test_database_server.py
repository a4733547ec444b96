"""The embedded server is made, shared, stopped and survives what is done to its users."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from engine.database import RECONNECTED, Database
from engine.database.embedded.locate import MAJOR
from engine.database.embedded.server import EmbeddedServer
from engine.errors import DatabaseRefused, DatabaseUnavailable
from engine.settings import Settings
from tests.integration.database_processes import User, first_process, modes, servers
from tests.support import eventually

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
NOBODY = 65534
COUNT_ROWS = "SELECT count(*) FROM noctuary.migration"


async def value(database: Database, statement: str) -> object:
    async with database.connection() as connection:
        row = await (await connection.execute(statement.encode())).fetchone()
    return row[0] if row else None


async def test_first_start_in_any_language_knows_the_case_of_all_letters(
    environment: dict[str, str], data: Path, users: list[User]
) -> None:
    users.append(await User.start({**environment, "LANG": "C", "LC_ALL": "C"}))
    assert users[0].greeting == "open"
    assert await users[0].ask("sql SELECT lower('ÄRGER') = 'ärger', current_setting('server_encoding')") == (
        "(True, 'UTF8')"
    )
    assert (data / "postgres").stat().st_mode & 0o777 == 0o700
    await users[0].close()
    assert servers(data) == []


async def test_variables_of_other_postgres_programs_do_not_matter(
    environment: dict[str, str], installed: Path, users: list[User]
) -> None:
    foreign = {
        "PGHOST": "db.invalid",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGDATABASE": "other",
        "PGUSER": "other",
        "PGOPTIONS": "-c search_path=other",
        "PGSSLMODE": "verify-full",
        "PGGSSENCMODE": "require",
        "PGREQUIREAUTH": "scram-sha-256",
        "PGCHANNELBINDING": "require",
        "PGTARGETSESSIONATTRS": "standby",
        "PGCLIENTENCODING": "LATIN1",
        "PGDATA": "/nowhere",
    }
    users.append(await User.start({**environment, **foreign}))
    assert users[0].greeting == "open"
    await users[0].close()


async def test_the_last_user_stops_the_server(
    environment: dict[str, str], installed: Path, users: list[User]
) -> None:
    users += [await User.start(environment) for _ in range(3)]
    server = first_process(installed)
    for user in users:
        assert server.is_running()  # this one, not another that was started in its place
        assert await user.ask(f"sql {COUNT_ROWS.replace('count(*)', 'count(*) > 0')}") == "(True,)"
        await user.close()
    assert servers(installed) == []


async def test_a_killed_user_does_not_count_any_more(
    environment: dict[str, str], installed: Path, users: list[User]
) -> None:
    users.append(await User.start(environment))
    assert users[0].greeting == "open"
    await users[0].kill()
    assert servers(installed)
    users.append(await User.start(environment))
    await users[1].close()
    assert servers(installed) == []


async def test_four_that_start_at_once_share_one_server(
    environment: dict[str, str], data: Path, users: list[User]
) -> None:
    users += await asyncio.gather(*(User.start(environment) for _ in range(4)))
    assert [user.greeting for user in users] == ["open"] * 4
    starts = await asyncio.gather(*(user.ask("sql SELECT pg_postmaster_start_time()") for user in users))
    assert len(set(starts)) == 1
    await asyncio.gather(*(user.close() for user in users))
    assert servers(data) == []


async def test_a_killed_server_is_started_again_under_its_users(own: Settings, installed: Path) -> None:
    database = await Database.open(own, application="tests")
    changes = database.feed.subscribe("nothing")
    # This one does not look up while it counts, and so outlives its killed parent by a moment.
    busy = asyncio.create_task(value(database, "SELECT count(*) FROM generate_series(1, 8000000)"))
    await eventually(lambda: value(database, "SELECT 1"))
    first_process(installed).kill()
    change = await asyncio.wait_for(anext(changes), 60)
    assert change.topic == RECONNECTED
    assert await value(database, COUNT_ROWS)
    await asyncio.gather(busy, return_exceptions=True)
    await database.close()


@pytest.mark.parametrize(
    "text", ["", "1", "{stranger}\n/elsewhere\n1\n5432\n.\n\n", "999999999\n", "-1\n", "x\n"]
)
async def test_a_stale_pid_file_keeps_nothing_from_starting(
    own: Settings, installed: Path, text: str
) -> None:
    server = EmbeddedServer(own.paths.data)
    await server.join()  # the copy belongs to the server's account from here on
    await server.leave()
    account = (installed / "postgres").stat()
    stranger = subprocess.Popen(["sleep", "600"], **as_account(account.st_uid))
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        file = installed / "postgres" / name
        file.write_text(text.format(stranger=stranger.pid))
        os.chown(file, account.st_uid, account.st_gid)
    database = await Database.open(own, application="tests")
    assert await value(database, COUNT_ROWS)
    await database.close()
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def as_account(uid: int) -> dict[str, object]:
    return {"user": uid, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.mark.parametrize(
    "name",
    ["a b", 'it\'s "quoted" $HOME `id`; -x', "a,b", "Über 夢", "n" * 120, os.fsdecode(b"not\xffutf8")],
    ids=["space", "quotes", "comma", "letters", "long", "bytes"],
)
async def test_any_path_will_do(environment: dict[str, str], made: Path, tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    shutil.copytree(made, home / "noctuary")
    settings = Settings.load({**environment, "XDG_DATA_HOME": str(home)}, cwd=tmp_path)
    database = await Database.open(settings, application="tests")
    try:
        assert database.info.embedded
        assert database.info.location == str(home / "noctuary" / "postgres")
        assert await value(database, COUNT_ROWS)
    finally:
        await database.close()
    assert servers(home) == []


async def test_a_first_start_in_an_awkward_path(environment: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / f'it\'s "quoted" $HOME `id`, {"n" * 100}'
    settings = Settings.load({**environment, "XDG_DATA_HOME": str(home)}, cwd=tmp_path)
    database = await Database.open(settings, application="tests")
    await database.close()
    assert servers(home) == []


@AS_ROOT
async def test_as_root_no_folder_is_opened_to_others(own: Settings, data: Path, tmp_path: Path) -> None:
    data.mkdir(mode=0o700, parents=True)
    before = modes(data / "postgres")
    assert any(mode & 0o007 == 0 for mode, _, _ in before.values())
    database = await Database.open(own, application="tests")
    runs_as = {process.uids().effective for process in servers(data)}
    await database.close()
    after = modes(data / "postgres")
    assert {path: after[path] for path in before} == before
    assert data.stat().st_mode & 0o777 == 0o700
    assert data.stat().st_uid == 0
    assert runs_as == {(data / "postgres").stat().st_uid}
    assert runs_as != {0}


@AS_ROOT
async def test_root_and_an_ordinary_user_take_turns_on_the_users_data(
    environment: dict[str, str], own: Settings, data: Path, tmp_path: Path, users: list[User]
) -> None:
    home = Path("/tmp") / f"noctuary-test-{os.getpid()}"
    for folder in (home, home / "XDG_DATA_HOME", home / "XDG_DATA_HOME" / "noctuary"):
        folder.mkdir(mode=0o700)
        os.chown(folder, NOBODY, NOBODY)
    mine = {**environment, "HOME": str(home)}
    mine |= {name: f"{home}/{name}" for name in environment if name.startswith("XDG_")}
    try:
        for arguments in ((), ("--as", str(NOBODY)), (), ("--as", str(NOBODY))):
            user = await User.start(mine, *arguments)
            users.append(user)
            assert user.greeting == "open"
            assert {process.uids().effective for process in servers(home)} == {NOBODY}
            await user.close()
            assert [path for path in home.rglob("*") if path.lstat().st_uid != NOBODY] == []
    finally:
        shutil.rmtree(home)


@AS_ROOT
async def test_another_users_data_is_refused(
    environment: dict[str, str], tmp_path: Path, users: list[User]
) -> None:
    home = Path("/tmp") / f"noctuary-test-{os.getpid()}"
    (home / "noctuary" / "postgres").mkdir(parents=True)
    home.chmod(0o755)
    (home / "noctuary").chmod(0o777)
    mine = {name: str(home) if name.startswith("XDG_") else text for name, text in environment.items()}
    try:
        users.append(await User.start(mine, "--as", str(NOBODY)))
    finally:
        shutil.rmtree(home)
    assert "DatabaseRefused" in users[0].greeting
    assert "uid 0" in users[0].greeting


async def test_what_is_not_a_database_is_left_alone(own: Settings, data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "notes.md").write_text("mine")
    with pytest.raises(DatabaseRefused, match="holds files, but no database"):
        await Database.open(own, application="tests")
    assert (data / "postgres" / "notes.md").read_text() == "mine"


async def test_data_of_another_version_is_refused(own: Settings, data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "PG_VERSION").write_text(f"{MAJOR + 1}\n")
    with pytest.raises(DatabaseRefused, match=f"PostgreSQL {MAJOR + 1}"):
        await Database.open(own, application="tests")


async def test_a_first_start_that_was_interrupted_begins_anew(own: Settings, data: Path) -> None:
    (data / "postgres.new" / "base").mkdir(parents=True)
    database = await Database.open(own, application="tests")
    await database.close()
    assert not (data / "postgres.new").exists()
    assert (data / "postgres.new.stale" / "base").is_dir(), "what this start did not make, it does not remove"


async def test_a_data_folder_open_to_others_is_refused_and_stays_so(own: Settings, installed: Path) -> None:
    (installed / "postgres").chmod(0o755)
    with pytest.raises(DatabaseRefused, match=r"permissions .* are 0755") as caught:
        await Database.open(own, application="tests")
    assert "--fix" in caught.value.remedy
    assert (installed / "postgres").stat().st_mode & 0o777 == 0o755


async def test_a_data_folder_that_its_group_may_read_will_do(own: Settings, installed: Path) -> None:
    (installed / "postgres").chmod(0o750)
    await (await Database.open(own, application="tests")).close()


async def test_a_file_of_the_version_that_names_none_is_told_as_damaged(own: Settings, data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "PG_VERSION").write_bytes(b"\xff\x00")
    with pytest.raises(DatabaseRefused, match=r"PG_VERSION .* is damaged"):
        await Database.open(own, application="tests")


async def test_a_server_that_cannot_start_says_why(own: Settings, installed: Path) -> None:
    with (installed / "postgres" / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnavailable, match=r"configuration file .* contains errors") as caught:
        await Database.open(own, application="tests")
    assert "postgres.log" in caught.value.remedy


async def test_a_server_that_does_not_answer_is_waited_for(own: Settings, installed: Path) -> None:
    first = await Database.open(own, application="tests")
    server = first_process(installed)
    server.suspend()
    states: list[str] = []
    second = asyncio.create_task(Database.open(own, application="tests", on_state=states.append))
    await eventually(lambda: "waiting" in " ".join(states), timeout=30)
    assert not second.done()
    server.resume()
    opened = await asyncio.wait_for(second, 60)
    await opened.close()
    assert psutil.pid_exists(server.pid)  # the first still uses it
    await first.close()
