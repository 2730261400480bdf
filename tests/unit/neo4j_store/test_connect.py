"""Settings of Neo4j, servers that are too old, and errors in words."""

import pytest
from neo4j.exceptions import ClientError, ConstraintError, ServiceUnavailable

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import check_version, configured, explained, open_driver
from pipelines.settings import Settings, load_settings


@pytest.mark.parametrize("version", ["5.26.0", "5.26.28", "5.27.0", "2025.01.0", "2026.10.1-SNAPSHOT"])
def test_versions_that_serve(version):
    check_version(version, "bolt://x")


@pytest.mark.parametrize("version", ["5.25.1", "5.9.0", "4.4.40", ""])
def test_older_ones_are_refused_by_name(version):
    with pytest.raises(CgragError, match=rf"bolt://x is version {version or 'unknown'}; at least 5\.26"):
        check_version(version, "bolt://x")


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:7474",
        "127.0.0.1:7687",
        "bolt://",
        "bolt://ann:hush@host:7687",
        "ann:hush@host:7687",
        "bolt://ann:hu/sh@h",
    ],
)
def test_what_is_no_address_is_refused_without_telling_a_password(uri, monkeypatch):
    monkeypatch.setenv("NEO4J_URI", uri)
    with pytest.raises(CgragError, match="The setting NEO4J_URI is not valid") as error:
        load_settings()
    assert "hush" not in str(error.value) and "hu/sh" not in str(error.value)


def test_the_settings_of_neo4j_and_no_password_in_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("NEO4J_URI", "neo4j+s://host")
    monkeypatch.setenv("NEO4J_PASSWORD", "hush")
    settings = load_settings()
    assert (settings.neo4j_uri, settings.neo4j_user) == ("neo4j+s://host", "neo4j")
    assert "hush" not in repr(settings) + settings.model_dump_json()
    monkeypatch.setenv("NEO4J_URI", "")
    assert load_settings().neo4j_uri is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cgrag.toml").write_text('neo4j_password = "hush"\n')
    with pytest.raises(CgragError, match="set NEO4J_PASSWORD in the environment"):
        load_settings()


def test_nothing_configured_names_the_setting():
    with pytest.raises(CgragError, match="Set NEO4J_URI"):
        configured(Settings())


def test_nothing_that_listens_is_told_at_once():
    with pytest.raises(CgragError, match=r"Neo4j at bolt://127\.0\.0\.1:1 cannot be reached"):
        open_driver(Settings(neo4j_uri="bolt://127.0.0.1:1"))


def test_errors_of_the_server_in_words():
    settings = Settings(neo4j_uri="bolt://x")
    missing = ClientError._hydrate_neo4j(code="Neo.ClientError.Database.DatabaseNotFound", message="no 'y'")
    assert "NEO4J_DATABASE" in explained(missing, settings).remedy
    assert "of its own" in explained(ConstraintError("unique"), settings).remedy
    long = "Couldn't connect to x:7 (resolved to ('127.0.0.1:7',)): Failed (reason [Errno 111] Connection refused)"
    assert explained(ServiceUnavailable(long), settings).problem.endswith("cannot be reached: Connection refused")
