"""File names of partition keys, and settings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.layout import Layout, file_name
from pipelines.settings import PROJECT, load_settings

KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300)


@settings(max_examples=150)
@given(KEYS, KEYS)
def test_every_key_has_a_short_plain_file_name_of_its_own(first, second):
    assert (file_name(first) == file_name(second)) == (first == second)
    assert len(file_name(first)) <= 80
    assert file_name(first).replace("-", "").isalnum()


def test_the_home_is_absolute_wherever_it_is_named_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CGRAG_HOME", "here")
    assert load_settings().home == tmp_path / "here"
    monkeypatch.setenv("CGRAG_HOME", "~/there")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings().home == tmp_path / "there"
    monkeypatch.delenv("CGRAG_HOME")
    assert load_settings().home == PROJECT / "data"
    assert Layout(load_settings().home).partition("a/b", "chunks").is_relative_to(PROJECT / "data")


def test_the_environment_wins_over_the_settings_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cgrag.toml").write_text("partition_chunks = 7\n[chunking]\ncap = 700\noverlap = 10\n")
    assert (load_settings().partition_chunks, load_settings().chunking.cap) == (7, 700)
    monkeypatch.setenv("CGRAG_CHUNKING__CAP", "900")
    assert (load_settings().chunking.cap, load_settings().chunking.overlap) == (900, 10)


@pytest.mark.parametrize(
    ("name", "value"),
    [("CGRAG_CHUNKING__CAP", "1"), ("CGRAG_CHUNKING__STRATEGY", "whole"), ("CGRAG_PARTITION_CHUNKS", "-1"),
     ("CGRAG_LEXICAL__K1", "0"), ("CGRAG_MAX_FILE_BYTES", "many")],
)  # fmt: skip
def test_a_value_that_is_not_valid_is_refused_by_its_name(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(CgragError, match=f"{name} is not valid"):
        load_settings()


@pytest.mark.parametrize("text", ["cap = 1\n", "[chunking]\ncapp = 700\n", "not toml", "[chunking\n"])
def test_a_settings_file_that_is_not_valid_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cgrag.toml").write_text(text)
    with pytest.raises(CgragError, match=r"not valid|cgrag\.toml cannot be read"):
        load_settings()
