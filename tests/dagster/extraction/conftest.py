"""A corpus of three partitions in a home in which everything is built but what the model has to say."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgrag.materialize import Materializer
from pipelines.corpus.spec import parse_spec
from pipelines.progress import no_report
from pipelines.settings import PROJECT
from pipelines.tables import write_json
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import Home, write_tree

FILES = docs("a", 4) | docs("b", 3) | docs("c", 2)


@pytest.fixture
def fake(monkeypatch) -> Iterator[FakeModel]:
    with FakeModel() as model:
        monkeypatch.setenv("CGRAG_LLM_URLS", model.url)
        monkeypatch.setenv("CGRAG_EXTRACT__MODEL", MODEL)
        monkeypatch.setenv("CGRAG_EXTRACT__BACKOFF", "0")
        yield model


@pytest.fixture
def home(fake, directories_apart, own_home):
    return Home(own_home, llm_urls=[fake.url], extract={"model": MODEL, "backoff": 0})


@pytest.fixture
def corpus(tree) -> Path:
    return write_tree(tree, FILES)


@pytest.fixture(scope="module")
def first_home(tmp_path_factory, clean_environment) -> Path:
    """A home in which everything is built but what the model has to say, to be copied."""
    folder = tmp_path_factory.mktemp("unasked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CGRAG_HOME", str(folder / "home"))
        patch.setenv("CGRAG_DAGSTER_DIR", str(folder / "home" / "dagster"))
        patch.setenv("CGRAG_PARTITION_CHUNKS", "0")
        patch.setenv("CGRAG_EXTRACT__MODEL", MODEL)
        patch.setenv("DAGSTER_HOME", str(folder))
        shutil.copy(PROJECT / "dagster.yaml", folder)
        home = Home(folder / "home", partition_chunks=0, extract={"model": MODEL})
        Materializer(home.settings, no_report).run(home.scan(write_tree(folder / "tree", FILES)))
    return folder / "home"


@pytest.fixture
def built(corpus, home, first_home) -> Path:
    """Everything but what the model has to say."""
    shutil.copytree(first_home, home.settings.home)
    write_json(home.layout.corpus_record, vars(parse_spec(str(corpus))))
    return corpus
