"""The OpenAPI document is true: schemathesis asks the server in every way it can think of, and some it cannot."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from engine.doors import exits
from tests.integration.server_process import Serving

if TYPE_CHECKING:
    from tests.integration.shell import Shell

EXAMPLES = 15
"""Requests by random for each operation, beside those that are thought out."""


UNKNOWN = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "410", "5xx"]

[[operations]]
include-name = "POST /prepare"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "404", "422"]
"""
"""What no schema can say: a token that was never given out is gone, a constitution of that name is none."""


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "owls.md").write_text("# Owls\n\nOwls hunt at night.\n")
    assert shell.run("index", str(folder), "--no-embed").returncode == exits.DONE
    config = Path(shell.env["XDG_CONFIG_HOME"]) / "noctuary" / "eval.json"
    config.parent.mkdir(parents=True)
    question = {"id": "owl", "question": "owls", "expect": "citation", "expect_path_contains": "owls"}
    config.write_text(json.dumps([question]))
    return folder


async def test_every_answer_is_as_the_document_says(shell: Shell, notes: Path, tmp_path: Path) -> None:
    shell.env["API_TOKEN"] = "s3cret"
    config = tmp_path / "schemathesis.toml"
    config.write_text(UNKNOWN)
    with Serving(shell) as server:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("schemathesis"), "--config-file", config, "run", f"{server.url}/openapi.json",
            "--header", "Authorization: Bearer s3cret", "--checks", "all", "--max-examples", str(EXAMPLES),
            "--generation-deterministic", "--no-color", "--request-timeout", "20",
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        report = (await process.communicate())[0].decode()
        assert process.returncode == 0, report
        assert "Selected: 24/24" in report
        assert "Tested: 24" in report
        assert not [line for line in server.told() if line["level"] == "error"]


def test_the_document_names_every_route_and_every_error(shell: Shell) -> None:
    with Serving(shell) as server:
        document = httpx.get(f"{server.url}/openapi.json", trust_env=False).json()
    routes = {(method, path) for path, item in document["paths"].items() for method in item}
    assert routes == {
        ("get", "/health"), ("get", "/search"), ("post", "/ask"), ("get", "/eval"), ("get", "/eval/history"),
        ("post", "/index"), ("get", "/index/{job_id}"), ("get", "/status"), ("get", "/files"),
        ("get", "/jobs/recent"), ("get", "/traces/recent"), ("post", "/prepare"), ("post", "/record"),
        ("post", "/verify"), ("get", "/lessons"), ("delete", "/lessons/{lesson_id}"),
        ("patch", "/lessons/{lesson_id}"), ("get", "/lessons/{lesson_id}/sources"), ("post", "/synthesize/prepare"),
        ("post", "/synthesize/record"), ("post", "/sync"), ("get", "/memory"), ("get", "/metrics"), ("get", "/cores"),
    }  # fmt: skip
    assert "securitySchemes" not in document["components"]
    for path in ("/prepare", "/lessons/{lesson_id}/sources", "/metrics"):
        (operation,) = document["paths"][path].values()
        told = {parameter["name"] for parameter in operation["parameters"]}
        assert told >= {"X-Khwan-Core", "X-Khwan-User"}, path
    for path, item in document["paths"].items():
        for operation in item.values():
            assert "HTTPValidationError" not in json.dumps(operation)
            told = set(operation["responses"])
            assert told >= (
                {"500", "413"} if path == "/health" else {"403", "413", "414", "421", "429", "500", "503"}
            )
            for status, response in operation["responses"].items():
                assert response["description"]
                if status >= "400":
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Problem"}
