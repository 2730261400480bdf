"""`cgrag llm`: the local server from a shell."""

import pytest

from pipelines.serve.lease import server_folder
from tests.unit.serve.conftest import MODEL


@pytest.fixture
def settings(serving, monkeypatch):
    settings = serving()
    monkeypatch.setenv("CGRAG_SERVE__FOLDER", str(settings.serve.folder))
    monkeypatch.setenv("CGRAG_EXTRACT__MODEL", MODEL)
    return settings


def test_up_status_and_down(settings, cli):
    assert "No model server runs here" in cli("llm", "status").out
    assert cli("llm", "down").out == "No model server runs here.\n"
    up = cli("llm", "up", "--json")
    assert up.code == 0, up.err
    shown = cli("llm", "status", "--json").json
    assert shown == up.json
    assert (shown["running"], shown["model"], shown["in_use"]) == (True, MODEL, False)
    assert shown["log"] == str(server_folder(settings) / "vllm.log")
    assert f"{MODEL} at {shown['url']}" in cli("llm", "up").out
    assert cli("llm", "down").out == "Stopped.\n"
    assert not cli("llm", "status", "--json").json["running"]


def test_endpoints_of_ones_own_are_mentioned(settings, cli, monkeypatch):
    monkeypatch.setenv("CGRAG_LLM_URLS", "http://other:1/v1")
    assert "http://other:1/v1" in cli("llm", "up").err
