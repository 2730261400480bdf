"""Fixtures of the Dagster tests: a corpus of several partitions, and the instance that its runs are recorded in."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import cgrag.definitions  # isort: skip  # first: it says which beta features of Dagster we mean

import dagster as dg
import pytest

from cgrag.materialize import Materializer
from pipelines.corpus.spec import parse_spec
from pipelines.progress import no_report
from pipelines.settings import PROJECT
from pipelines.tables import write_json
from tests.support import Home, write_tree

assert cgrag.definitions.defs

Run = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def directories_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every directory is a partition of its own."""
    monkeypatch.setenv("CGRAG_PARTITION_CHUNKS", "0")


@pytest.fixture
def home(directories_apart: None, own_home: Path, empty_instance: Path) -> Home:
    shutil.copytree(empty_instance, own_home / "dagster")
    return Home(own_home)


ZOO = {
    "ape/gorilla.py": "def gorilla():\n    return 'nests'\n",
    "ape/orang.md": "# Orang\n\nhangs in trees\n",
    "bear/panda.py": "class Panda:\n    food = 'bamboo'\n",
    "cat/lion.md": "# Lion\n\nroars loudly\n",
    "readme.md": "# Zoo\n\nof animals\n",
}


@pytest.fixture
def zoo(tree: Path) -> Path:
    """A corpus of four partitions."""
    return write_tree(tree, ZOO)


@contextmanager
def home_of(folder: Path) -> Iterator[Home]:
    """A home below `folder`, with its Dagster instance, for what several tests begin with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CGRAG_HOME", str(folder / "home"))
        patch.setenv("CGRAG_DAGSTER_DIR", str(folder / "home" / "dagster"))
        patch.setenv("CGRAG_PARTITION_CHUNKS", "0")
        patch.setenv("DAGSTER_HOME", str(folder))
        shutil.copy(PROJECT / "dagster.yaml", folder)
        yield Home(folder / "home")


def take_over(begun: Path, home: Home, corpus: Path) -> None:
    """Fill `home` with what `home_of(begun)` holds, as if it had been built from `corpus`."""
    shutil.copytree(begun / "home", home.settings.home, dirs_exist_ok=True)
    write_json(home.layout.corpus_record, vars(parse_spec(str(corpus))))


@pytest.fixture(scope="session")
def empty_instance(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Path:
    """A Dagster instance without runs, to be copied: making its tables takes a second."""
    with home_of(tmp_path_factory.mktemp("empty")) as home:
        home.layout.dagster.mkdir(parents=True)
        with dg.DagsterInstance.get() as instance:
            assert instance.get_runs_count() == 0
    return home.layout.dagster


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Path:
    """A folder with a home in which the zoo has been built through Dagster."""
    folder = tmp_path_factory.mktemp("first")
    with home_of(folder) as home:
        Materializer(home.settings, no_report).run(home.scan(write_tree(folder / "tree", ZOO)))
    return folder


@pytest.fixture
def built_zoo(zoo: Path, home: Home, first_run: Path) -> Path:
    """The zoo after a first run."""
    take_over(first_run, home, zoo)
    return zoo


@pytest.fixture
def run(home: Home) -> Run:
    """Build what is missing or stale through Dagster, in this process."""

    def through_dagster(corpus: Path, select: Sequence[str] = (), partitions: Sequence[str] = ()) -> list[str]:
        return Materializer(home.settings, no_report).run(home.scan(corpus), select, partitions)

    return through_dagster


class Records:
    """What the instance has recorded, and what of it is new since the last look."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self._seen: set[int] = set()
        self.new()

    def new(self, asset: str = "chunks") -> list[str | None]:
        """Partition keys of materializations since the last call, sorted."""
        records = self.instance.fetch_materializations(dg.AssetKey(asset), limit=1000).records
        fresh = [record for record in records if record.storage_id not in self._seen]
        self._seen.update(record.storage_id for record in records)
        return sorted(record.partition_key or "" for record in fresh)

    def runs(self) -> int:
        return self.instance.get_runs_count()

    def partitions(self) -> set[str]:
        return set(self.instance.get_dynamic_partitions("directories"))

    def latest(self, asset: str, key: str) -> dg.EventLogRecord:
        """The last materialization of a partition."""
        wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[key])
        return self.instance.fetch_materializations(wanted, limit=1).records[0]


@pytest.fixture
def records(home: Home) -> Iterator[Records]:
    """What is recorded from now on; ask for it after `built_zoo`."""
    with dg.DagsterInstance.get() as instance:
        yield Records(instance)
