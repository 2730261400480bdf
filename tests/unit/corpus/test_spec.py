"""Corpus specs: their forms, what is refused, and the one corpus of a home."""

from pathlib import Path

import pytest

from pipelines.corpus.spec import check_home, claim_home, held_spec, parse_spec, recorded_spec
from pipelines.errors import CgragError
from pipelines.layout import Layout


@pytest.mark.parametrize(
    ("text", "kind", "location", "version", "name"),
    [
        ("pypi:vllm==0.10.1", "pypi", "vllm", "0.10.1", "vllm-0.10.1"),
        ("pypi: Zope.Interface == 7.0rc1+local.2", "pypi", "zope-interface", "7.0rc1+local.2", None),
        ("pypi:ruamel_yaml.clib==1!2.0", "pypi", "ruamel-yaml-clib", "1!2.0", None),
        ("git+https://example.org/a/b.git@v1.2", "git", "https://example.org/a/b.git", "v1.2", "b@v1.2"),
        ("git+https://example.org/a/b", "git", "https://example.org/a/b", "HEAD", "b@HEAD"),
        ("git+https://me@example.org/a/b@main", "git", "https://me@example.org/a/b", "main", None),
        ("git+ssh://git@example.org/a/b@x/y-branch", "git", "ssh://git@example.org/a/b", "x/y-branch", None),
        ("git+git@example.org:a/b.git@main", "git", "git@example.org:a/b.git", "main", "b@main"),
        ("git+git@example.org:a/b.git", "git", "git@example.org:a/b.git", "HEAD", None),
        ("git+/srv/repo@main", "git", "/srv/repo", "main", "repo@main"),
        ("git+file:///srv/repo@abc123", "git", "file:///srv/repo", "abc123", None),
        ("/srv/code", "folder", "/srv/code", "", "code"),
        ("/srv/code/", "folder", "/srv/code", "", "code"),
        ("/srv/a@b:c==1", "folder", "/srv/a@b:c==1", "", None),
    ],
)
def test_each_form_is_understood(text, kind, location, version, name):
    spec = parse_spec(text)
    assert (spec.kind, spec.location, spec.version) == (kind, location, version)
    assert name in (None, spec.name)


@pytest.mark.parametrize(
    "text", ["pypi:vllm==0.10.1", "git+https://example.org/a/b@v1", "git+/srv/r@main", "/srv/code"]
)
def test_the_normal_form_of_a_spec_names_it_again(text):
    assert parse_spec(text).text == text
    assert parse_spec(parse_spec(text).text) == parse_spec(text)


def test_folders_are_made_absolute_from_where_the_user_is(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)
    for text in (tree.name, f"./{tree.name}/.", str(tree), f"{tree}/../{tree.name}"):
        assert parse_spec(text).location == str(tree)
    assert parse_spec(f"git+{tree.name}@main").location == str(tree)


def test_a_tilde_is_the_users_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_spec("~/code").location == str(tmp_path / "code")


def test_a_folder_that_a_link_names_is_the_same_corpus(tree):
    (tree.parent / "link").symlink_to(tree)
    assert parse_spec(str(tree.parent / "link")) == parse_spec(str(tree))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\n", "a\0b", "pypi:vllm", "pypi:vllm>=1", "pypi:==1", "pypi:vllm==", "pypi:-x==1", "pypi:a b==1",
        "pypi:vllm==1;python_version<'3'", "npm:react==1", "https://example.org/x.tar.gz", "svn://host/x", "git+",
        "git+@main", "git+https://example.org/a@", "git+--upload-pack=x@main", "git+https://example.org/a@--output",
    ],
)  # fmt: skip
def test_what_has_none_of_the_forms_is_refused_with_the_forms(text):
    with pytest.raises(CgragError) as refused:
        parse_spec(text)
    assert refused.value.remedy


@pytest.mark.parametrize("text", ["git+https://me:secret@example.org/a@v1", "git+ssh://git:secret@host/a"])
def test_a_password_is_refused_and_not_repeated(text):
    with pytest.raises(CgragError, match="password") as refused:
        parse_spec(text)
    assert "secret" not in str(refused.value)


def test_a_home_holds_the_first_corpus_that_claims_it(tmp_path):
    layout = Layout(tmp_path / "home")
    assert recorded_spec(layout) is None
    assert held_spec(layout).text == "pypi:vllm==0.10.1"
    spec = parse_spec(str(tmp_path))
    claim_home(layout, spec)
    claim_home(layout, spec)
    assert recorded_spec(layout) == held_spec(layout) == spec


def test_another_corpus_is_refused_with_the_command_for_a_home_of_its_own(tmp_path):
    layout = Layout(tmp_path / "home")
    claim_home(layout, parse_spec("/srv/code"))
    other = parse_spec("git+https://example.org/a/b.git@v1.2")
    with pytest.raises(CgragError) as refused:
        claim_home(layout, other)
    assert "/srv/code" in refused.value.problem
    assert f"CGRAG_HOME={tmp_path}/home-b-v1.2 cgrag run --corpus {other.text}" in refused.value.remedy
    with pytest.raises(CgragError):
        check_home(layout, parse_spec("/srv/code2"))
    assert recorded_spec(layout) == parse_spec("/srv/code")


def test_a_damaged_record_is_named(tmp_path):
    layout = Layout(tmp_path)
    Path(layout.corpus_record).write_text("{")
    with pytest.raises(CgragError, match=r"corpus\.json is damaged"):
        recorded_spec(layout)
