"""What a load sends, and what it does when the database fails it, by a driver that records (tests/cases: n01, n03)."""

import dataclasses
import json
import re

import pytest
from neo4j.exceptions import AuthError, ServiceUnavailable, TransientError

from pipelines.errors import CgragError
from pipelines.neo4j_store import load, rows
from pipelines.neo4j_store.load import RETRY_SECONDS, Loader
from pipelines.neo4j_store.rows import LocalGraph
from pipelines.neo4j_store.schema import NODES
from pipelines.progress import no_report
from pipelines.settings import Settings
from tests.graphs import WrittenHome, chunk, edge, entity, mention, of_case
from tests.support import case
from tests.unit.neo4j_store.recorder import Recorder

SECRET = "not-to-be-told"


class Clock:
    """Time that passes only while a load sleeps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def written(tmp_path):
    return WrittenHome(tmp_path / "written")


@pytest.fixture
def loaded(written, monkeypatch):
    """Load the written graph, 50 rows a batch, through a driver; returns the result, what was logged, and the clock."""
    for module in (load, rows):
        small = tuple(dataclasses.replace(table, batch=50) for table in module.TABLES)
        monkeypatch.setattr(module, "TABLES", small)
    settings = Settings(
        home=written.layout.home, neo4j_uri="bolt://database.invalid:7687", neo4j_password=SECRET, neo4j_user="ann"
    )

    def run(driver):
        clock, said = Clock(), []
        graph = LocalGraph(written.layout, written.chunked)
        try:
            return Loader(driver, settings, graph, no_report, said.append, clock, clock.sleep).load(), said, clock
        finally:
            graph.close()
            assert SECRET not in "".join(said)

    return run


@pytest.fixture
def n01(written):
    data = json.loads((case("n01").folder / "graph.json").read_bytes())
    written.write(*of_case(data))
    return data


@pytest.fixture
def n03(written):
    written.write(*of_case(json.loads((case("n03").folder / "graph.json").read_bytes())))


def test_n01_names_are_parameters_and_never_text(n01, loaded):
    driver = Recorder()
    loaded(driver)
    sent = [
        row["properties"]["name"]
        for query, rows in driver.batches
        if ":Entity {" in query
        for row in rows
        if "id" in row
    ]
    assert sorted(sent) == sorted(row["name"] for row in n01["entities"])
    words = [row["name"] for row in n01["entities"] if len(row["name"].strip()) > 5]
    assert not [name for name in words for query in driver.queries() if name in query]


def test_n01_labels_and_types_are_of_the_schema_or_parameters(n01, loaded):
    driver = Recorder()
    loaded(driver)
    texts = [re.sub(r"'[^']*'|\{[^{}]*\}|\$\([^)]*\)+", "", query) for query in driver.queries()]
    fixed = {*NODES, "CgragGraph", "CgragLock", "FROM_DOCUMENT", "MENTIONED_IN"}
    assert {name for text in texts for name in re.findall(r"[(\[]\w*:(\w+)", text)} <= fixed
    assert not [text for text in driver.queries() if "DETACH DELETE" in text]
    labels = {label for _, rows in driver.batches for row in rows for label in row.get("labels", ())}
    types = {row["type"] for _, rows in driver.batches for row in rows if "type" in row}
    assert labels == types - {"RELATES_TO"} == {"Person"}


def test_n01_types_that_can_be_none_stay_as_properties(n01, loaded):
    driver = Recorder()
    result, _, _ = loaded(driver)
    assert (result.written["entity"], result.written["edge"]) == (27, 27)
    kept = {row["properties"]["type"] for _, rows in driver.batches for row in rows if "labels" in row}
    assert kept == {row["type"] for row in n01["entities"]}
    relations = {row["properties"]["relation"] for _, rows in driver.batches for row in rows if "relation" in row}
    assert relations == {row["type"] for row in n01["relations"]}


def test_n03_every_merged_label_has_its_constraint_before(n03, loaded):
    driver = Recorder()
    loaded(driver)
    queries = driver.queries()
    merged = {
        label: at
        for at, query in reversed(list(enumerate(queries)))
        for label in re.findall(r"MERGE \(\w+:(\w+)", query)
    }
    assert {"CgragGraph", "CgragLock", "Entity"} <= set(merged)
    for label, at in merged.items():
        assert any(f"CONSTRAINT cgrag_{label.lower().removeprefix('cgrag')}" in query for query in queries[:at])


def test_n03_a_deadlock_is_no_failure_and_loses_no_row(n03, loaded):
    driver = Recorder({3: TransientError("deadlock")})
    result, said, _ = loaded(driver)
    assert (driver.distinct("entity"), driver.distinct("edge")) == (500, 500)
    assert (result.rows["entity"], result.rows["edge"]) == (500, 500)
    assert len(said) == 1 and "deadlock" in said[0] and "Trying again" in said[0]


def test_n03_a_database_that_is_gone_for_good_is_named_and_how_far_it_got(n03, loaded):
    driver = Recorder({5: ServiceUnavailable("gone")}, for_good=True)
    with pytest.raises(CgragError) as error:
        loaded(driver)
    assert "bolt://database.invalid:7687" in error.value.problem
    assert "200 rows were done; 1,000 are left to the next load." in error.value.problem
    assert SECRET not in str(error.value)
    result, _, _ = loaded(Recorder())
    assert (result.written["entity"], result.written["edge"]) == (500, 500)


def test_a_database_that_is_away_is_given_up_after_the_documented_time(written, n03):
    class Away(Recorder):
        def _run(self, query, parameters=None, **more):
            raise ServiceUnavailable("away")

        run = _run

    driver, clock, graph = Away(), Clock(), LocalGraph(written.layout, written.chunked)
    with pytest.raises(CgragError, match="cannot be reached"):
        Loader(driver, Settings(neo4j_uri="bolt://x.invalid"), graph, no_report, print, clock, clock.sleep).load()
    graph.close()
    assert RETRY_SECONDS < clock.now <= RETRY_SECONDS + 5


def test_n03_a_refused_login_is_not_tried_again(n03, loaded):
    class Refusing(Recorder):
        def _run(self, query, parameters=None, **more):
            self.n += 1
            raise AuthError("unauthorized")

        run = _run

    driver = Refusing()
    with pytest.raises(CgragError) as error:
        loaded(driver)
    assert driver.n == 1
    assert "refuses the user ann" in error.value.problem and "NEO4J_PASSWORD" in error.value.remedy
    assert SECRET not in str(error.value)


def test_n03_a_relationship_whose_ends_are_not_there_is_not_counted_as_loaded(n03, loaded):
    with pytest.raises(CgragError, match="should have"):
        loaded(Recorder(lost=1))


def test_the_marker_says_loading_before_the_first_row_and_ready_after_the_last(written, loaded):
    written.write([entity("a.py::f")], [edge("a.py::f", "CALLS", "a.py::f")], [mention("a.py::f", "c0")], [chunk("c0")])
    driver = Recorder()
    loaded(driver)
    told = [
        (parameters["properties"]["state"] if "properties" in parameters else "rows")
        for _, parameters in driver.sent
        if "properties" in parameters or "rows" in parameters
    ]
    assert told == ["loading", *["rows"] * 5, "ready"]


def test_a_name_that_no_index_takes_is_named(written):
    written.write([entity("a.py::f"), entity(f"a.py::{'x' * 8000}")])
    graph = LocalGraph(written.layout, written.chunked)
    with pytest.raises(CgragError, match=r"The entity a\.py::xxx.* has a name of over 7,500 bytes"):
        graph.prepare()
    graph.close()


def test_a_graph_older_than_the_chunks_is_not_loaded(written):
    written.write([entity("a.py::f")])
    with pytest.raises(CgragError, match="is not that of the chunks"):
        LocalGraph(written.layout, {"all": "another"})
