"""`noctuary serve` as a process: what it refuses to start on, how it ends, and what it tells meanwhile."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests.http_clients import search
from tests.integration.server_process import SECONDS, Serving, until

if TYPE_CHECKING:
    from tests.integration.shell import Shell


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.md").write_text(
            f"# Bird {number}\n\nAn owl called {number} times.\n\nA lark sang.\n"
        )
    assert shell.run("index", str(folder), "--no-embed").returncode == exits.DONE
    return folder


def test_without_a_token_other_machines_are_not_served_and_nothing_is_opened(
    shell: Shell, tmp_path: Path
) -> None:
    shell.env["NOCTUARY_DATABASE_URL"] = "postgresql://nowhere.invalid/x"
    refused = shell.run("serve", "--host", "0.0.0.0")
    assert (refused.returncode, refused.stdout) == (exits.ERROR, "")
    assert refused.stderr == (
        "Server: 0.0.0.0 can be reached from other machines, and no API_TOKEN keeps those from your notes. "
        "Set API_TOKEN, or listen on 127.0.0.1.\n"
    )


def test_a_port_in_use_is_one_sentence(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = shell.run("serve", "--port", str(port))
    assert (refused.returncode, refused.stdout) == (exits.ERROR, "")
    assert refused.stderr.startswith(f"Server: Port {port} of 127.0.0.1 is in use by another program.")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, exits.INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_ends_it_in_order_and_what_is_asked_then_is_answered(
    shell: Shell, notes: Path, number: signal.Signals, status: int
) -> None:
    with Serving(shell) as server:
        half = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
        half.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 13\r\n\r\n")  # fmt: skip
        idle = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
        assert server.client().get("/search", params={"q": "owl"}).status_code == 200
        server.process.send_signal(number)
        assert idle.recv(1) == b""  # it takes no more
        half.sendall(b'{"q": "owls"}')
        assert half.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
        assert server.end(number) == (status, "")
        half.close()
        idle.close()


def test_what_is_never_answered_does_not_keep_it(shell: Shell) -> None:
    with Serving(shell) as server:
        stuck = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
        stuck.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Content-Length: 13\r\n\r\n{")  # fmt: skip
        assert server.client().get("/health").status_code == 200
        assert server.end() == (-signal.SIGTERM, "")
        assert stuck.recv(100).startswith(b"HTTP/1.1 503 ")
        stuck.close()
        assert not [line for line in server.lines if "Traceback" in line]


def test_its_log_is_a_line_of_json_for_each_record_without_what_is_asked(shell: Shell, notes: Path) -> None:
    with Serving(shell) as server:
        client = server.client()
        client.get("/search", params={"q": "owlsecret"})
        client.get("/nope", headers={"x": b"\x1b[2J".decode("latin-1")})
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as rude:
            rude.sendall(b"\x1b]0;OWNED\x07 nonsense\r\n\r\n")
            assert rude.recv(100).startswith(b"HTTP/1.1 400")
        server.end()
    told = server.told()
    assert any("API_TOKEN is not set" in each["text"] and each["level"] == "warning" for each in told)
    assert any(each["text"].startswith("GET /search 200 ") for each in told)
    assert "secret" not in json.dumps(told)
    assert "\x1b" not in "".join(server.lines)
    assert {each["source"] for each in told} >= {"http"}


def test_the_index_stays_live_while_it_serves(shell: Shell, notes: Path) -> None:
    with Serving(shell) as server:
        client = server.client()
        until(lambda: client.get("/status").json()["watchers"][0]["mode"] == "events")
        (notes / "late.md").write_text("A kestrel hovered.\n")
        until(lambda: client.get("/search", params={"q": "kestrel"}).json()["citations"])
        until(lambda: client.get("/status").json()["vectors"]["pending"] == 0)
        (citation,) = client.get("/search", params={"q": "kestrel", "k": 1}).json()["citations"]
        assert citation["distance"] < 0.8


def test_it_only_serves_when_told_so(shell: Shell, notes: Path) -> None:
    with Serving(shell, "--no-watch", "--no-work") as server:
        status = server.client().get("/status").json()
        assert status["watchers"] == []
        assert status["vectors"]["embedded"] == 0
        assert status["files_on_disk"] == 40


def test_a_token_and_a_limit_hold_over_the_wire(shell: Shell) -> None:
    shell.env |= {"API_TOKEN": "s3cret", "RATE_LIMIT_PER_MINUTE": "4"}
    with Serving(shell, "--host", "0.0.0.0") as server:
        client = server.client()
        client.base_url = client.base_url.copy_with(host="127.0.0.1")
        assert client.get("/status").status_code == 401
        client.headers["authorization"] = "Bearer s3cret"
        assert client.get("/status").status_code == 200
        assert client.get("/status", headers={"host": "notes.example.org"}).status_code == 200
        assert client.get("/status", headers={"x-forwarded-for": "8.8.8.8"}).status_code == 200
        refused = client.get("/status")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert client.get("/health").status_code == 200
    assert "s3cret" not in "".join(server.lines)


def test_a_head_without_an_end_is_not_waited_for(shell: Shell, tmp_path: Path) -> None:
    hasty = tmp_path / "hasty.py"
    hasty.write_text(
        "from engine.doors.http import server\nserver.HEADER_SECONDS = 0.3\nfrom tui.main import main\nmain()\n"
    )
    shell.program = (str(hasty),)
    with Serving(shell) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            assert slow.recv(100) == b""
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as again:
            again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
            answer = b""
            while piece := again.recv(1000):
                answer += piece
            assert answer.count(b"HTTP/1.1 200 OK") == 1


async def test_many_clients_at_once_get_every_answer(shell: Shell, notes: Path) -> None:
    with Serving(shell) as server:
        queries = ["owl", "lark sang", "bird 7", "how often did the owl call", "zebra"]
        outcome = await search(server.url, queries, clients=16, searches=320)
    assert outcome.errors == []
    assert len(outcome.waits) == 320
    assert outcome.found > 0
    assert min(outcome.engine) > 0


def test_knowmans_own_requests_are_answered_in_its_shapes(shell: Shell, notes: Path) -> None:
    questions = [
        {
            "id": "owl",
            "question": "An owl called 7 times",
            "expect": "citation",
            "expect_path_contains": ".md",
        },
        {"id": "no", "question": "zebra crossing", "expect": "negative"},
    ]
    config = Path(shell.env["XDG_CONFIG_HOME"]) / "noctuary" / "eval.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(questions))
    with Serving(shell) as server:
        client = server.client()
        job = client.post("/index")
        assert job.status_code == 202
        until(lambda: client.get(f"/index/{job.json()['job_id']}").json()["status"] == "done")
        run = client.get("/eval").json()
        assert run["total"] == 2
        assert run["groundedness"] == run["correct"] / 2
        assert run["failing"] == ([] if run["correct"] == 2 else ["no"])
        (stored,) = client.get("/eval/history", params={"limit": 5}).json()["runs"]
        assert {name: stored[name] for name in ("groundedness", "total", "correct", "answered_count")} == {
            name: run[name] for name in ("groundedness", "total", "correct", "answered_count")
        }
        assert stored["id"] == 1
        assert stored["created_at"]
