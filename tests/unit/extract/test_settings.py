"""The settings of extraction."""

from pathlib import Path

import pytest

from pipelines.errors import CgragError
from pipelines.settings import load_settings


def test_addresses_are_split_at_commas(monkeypatch):
    monkeypatch.setenv("CGRAG_LLM_URLS", " http://a:1/v1/ , https://b/v1,")
    assert load_settings().llm_urls == ("http://a:1/v1", "https://b/v1")
    Path("cgrag.toml").write_text('llm_urls = ["http://c/v1"]\n')
    monkeypatch.delenv("CGRAG_LLM_URLS")
    assert load_settings().llm_urls == ("http://c/v1",)


@pytest.mark.parametrize("value", ["localhost:8000", "ftp://a/v1", "http://"])
def test_what_is_no_address_is_refused(monkeypatch, value):
    monkeypatch.setenv("CGRAG_LLM_URLS", value)
    with pytest.raises(CgragError, match="CGRAG_LLM_URLS"):
        load_settings()


def test_the_api_key_comes_from_the_environment_alone_and_is_not_shown(monkeypatch):
    monkeypatch.setenv("CGRAG_LLM_API_KEY", "sesame")
    settings = load_settings()
    assert settings.llm_api_key.get_secret_value() == "sesame"
    assert "sesame" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    Path("cgrag.toml").write_text('llm_api_key = "sesame"\n')
    with pytest.raises(CgragError, match="CGRAG_LLM_API_KEY in the environment") as refused:
        load_settings()
    assert "sesame" not in str(refused.value)


def test_a_nested_setting_is_read_and_an_unknown_one_refused(monkeypatch):
    monkeypatch.setenv("CGRAG_EXTRACT__POLICY", "llm")
    monkeypatch.setenv("CGRAG_EXTRACT__TAXONOMY", "own.toml")
    settings = load_settings().extract
    assert settings.policy == "llm"
    assert settings.taxonomy == Path.cwd() / "own.toml"
    monkeypatch.setenv("CGRAG_EXTRACT__POLICY", "all")
    with pytest.raises(CgragError, match="CGRAG_EXTRACT__POLICY"):
        load_settings()


def test_a_password_in_an_address_of_no_form_is_not_shown(monkeypatch):
    monkeypatch.setenv("CGRAG_LLM_URLS", "me:hunter2@host:8000/v1")
    with pytest.raises(CgragError, match="CGRAG_LLM_URLS is not valid") as error:
        load_settings()
    assert "hunter2" not in str(error.value)
