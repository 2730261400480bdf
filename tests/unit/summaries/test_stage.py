"""Summaries out of the ledger: two passes, citations down to the line, failures, kills, and nothing asked twice."""

import itertools
import subprocess
import sys
import time

import pytest

from pipelines.communities.stage import make_communities
from pipelines.communities.stored import load_communities
from pipelines.errors import CgragError
from pipelines.settings import PROJECT, Settings
from pipelines.summaries import task
from pipelines.summaries.stage import make_summaries, plan_summaries
from pipelines.summaries.stored import stored_counts, summaries_problem
from tests.fake_model import MODEL, FakeModel
from tests.graphs import WrittenHome, edge, entity, write_ring


@pytest.fixture
def fake():
    with FakeModel() as model:
        yield model


@pytest.fixture
def ring(tmp_path):
    home = WrittenHome(tmp_path / "home")
    write_ring(home, 200)
    return home


def settings_of(home, fake, **summaries):
    return Settings(
        home=home.layout.home,
        llm_urls=[fake.url],
        extract={"model": MODEL, "backoff": 0, "retries": 0, "in_flight": 2, "flush_results": 4},
        communities={"largest": 9},
        summaries=summaries,
    )


@pytest.fixture
def settings(ring, fake):
    found = settings_of(ring, fake)
    make_communities(found)
    return found


def test_every_community_is_summarised_once_and_read_with_its_places(settings, fake):
    before = plan_summaries(settings)
    result = make_summaries(settings, ask=True)
    assert result.statuses == {"ok": before.communities} and fake.requests == before.requests == result.asked
    assert set(fake.asked.values()) == {1}
    found = load_communities(settings)
    told = [row for row in found.rows if row.summary]
    assert len(told) == before.communities
    for row in told:
        title, sentence = row.summary.split("\n")
        assert title == "On such things" and sentence.endswith("is what it is about. [1]")
        assert row.cited == [("a.py", 1)]
    again = make_summaries(settings, ask=True)
    assert (again.asked, again.fingerprint, plan_summaries(settings).requests) == (0, result.fingerprint, 0)


def test_without_being_told_to_no_model_is_asked(settings, fake):
    result = make_summaries(settings, ask=False)
    assert fake.requests == 0 and set(result.statuses) == {"pending"}
    assert stored_counts(settings)["pending"] == len(result.rows)
    assert all(row.summary == "" for row in load_communities(settings).rows)


def test_only_the_largest_of_the_upper_levels_are_summarised(ring, fake):
    settings = settings_of(ring, fake, levels=1, most=3)
    make_communities(settings)
    rows = make_summaries(settings, ask=True).rows
    first = [row for row in load_communities(settings).rows if row.level == 0]
    assert [row["community"] for row in rows] == [row.id for row in first[:3]]


def test_more_triples_than_a_request_takes_are_two_passes(ring, fake, monkeypatch):
    monkeypatch.setattr(task, "PART", 2)
    settings = settings_of(ring, fake, levels=1, most=4, triples=5)
    make_communities(settings)
    plan = plan_summaries(settings)
    rows = make_summaries(settings, ask=True).rows
    assert [len(row["keys"]) for row in rows] == [4] * 4 and plan.requests == fake.requests == 16
    shown = [body["messages"][-1]["content"] for body in fake.bodies]
    (second,) = [text for text in shown if text.count("is what it is about") and rows[0]["title"]][:1]
    assert second.startswith("Facts:\n1. Here `") and second.count("\n") == 3
    assert all(row["cited"] == [{"path": "a.py", "start_line": 1}] for row in rows)
    assert make_summaries(settings, ask=True).asked == 0


def test_citations_lead_to_the_lines_of_the_triples(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(task, "PART", 2)
    home = WrittenHome(tmp_path / "home")
    names = ["a", "b", "c", "d"]
    edges = [
        edge(a, "CALLS", b) | {"evidence": [{"path": f"{a}{b}.py", "start_line": 7, "chunk_id": ""}]}
        for a, b in itertools.combinations(names, 2)
    ]
    home.write([entity(name) for name in names], edges)
    settings = settings_of(home, fake)
    make_communities(settings)

    def act(text):
        if "what it is" in text:
            return {"content": "On all\nHere `b` is what it is about. [3]\nHere `a` is what it is about. [1][2]"}
        return None

    fake.act = act
    (row,) = make_summaries(settings, ask=True).rows
    assert row["text"] == "Here `b` is what it is about. [1]\nHere `a` is what it is about. [2][3]"
    assert [place["path"] for place in row["cited"]] == ["bd.py", "ab.py", "ad.py"]


def test_a_call_that_comes_to_nothing_fails_alone_and_is_asked_again(settings, fake):
    nothing = {"content": ""}
    failing = "`f0`"
    fake.act = lambda text: nothing if failing in text else None
    result = make_summaries(settings, ask=True)
    failed = [row for row in result.rows if row["status"] == "failed"]
    assert 0 < len(failed) < len(result.rows) and {row["problem"] for row in failed} == {"empty answer"}
    assert "have no summary" in str(summaries_problem(settings))
    fake.act = lambda text: None
    asked = fake.requests
    again = make_summaries(settings, ask=True)
    assert fake.requests - asked == len(failed) and again.statuses == {"ok": len(result.rows)}
    assert summaries_problem(settings) is None


def test_a_summary_that_invents_is_no_answer(settings, fake):
    fake.act = lambda text: {"content": "On it\nHere `made_up` works. [1]"}
    rows = make_summaries(settings, ask=True).rows
    assert {(row["status"], row["problem"]) for row in rows} == {("failed", "invalid answer")}


def test_an_unchanged_community_is_not_asked_again_when_others_change(tmp_path, fake):
    home = WrittenHome(tmp_path / "home")
    names = [[f"c{clique}_{member}" for member in range(6)] for clique in range(20)]
    edges = [edge(a, "CALLS", b) for clique in names for a, b in itertools.combinations(clique, 2)]
    edges += [edge(one[0], "CALLS", other[0]) for one, other in itertools.pairwise(names)]
    entities = [entity(name) for clique in names for name in clique]
    home.write(entities, edges)
    settings = settings_of(home, fake)
    settings.communities.largest = 6
    make_communities(settings)
    before = make_summaries(settings, ask=True)
    assert before.asked == len(before.rows) >= 20
    home.write([*entities, entity("new")], [*edges, edge("new", "CALLS", "c3_2")])
    with pytest.raises(CgragError, match="cgrag run --select communities"):
        make_summaries(settings, ask=True)
    make_communities(settings)
    assert make_summaries(settings, ask=True).asked <= 4


def test_no_server_is_told_with_the_command(settings, fake):
    fake.stop()
    with pytest.raises(CgragError, match="cannot be reached"):
        make_summaries(settings, ask=True)


def test_a_server_that_ignores_the_grammar_is_asked_nothing(settings, fake):
    fake.binds = False
    with pytest.raises(CgragError, match="does not bind"):
        make_summaries(settings, ask=True)
    assert fake.requests == 0


def test_a_server_that_goes_away_leaves_what_was_answered(settings, fake):
    fake.gate = lambda number: fake._loop.call_soon(fake._end.set) if number == 10 else None
    with pytest.raises(CgragError, match="community_summaries"):
        make_summaries(settings, ask=True)
    assert stored_counts(settings)["ok"] >= 4


@pytest.mark.parametrize("entities", [[], [entity("a")]], ids=["empty", "one"])
def test_a_graph_without_communities_asks_nothing(tmp_path, fake, entities):
    home = WrittenHome(tmp_path / "home")
    home.write(entities)
    settings = settings_of(home, fake)
    make_communities(settings)
    assert make_summaries(settings, ask=True).rows == [] and fake.requests == 0


CHILD = """
import sys
from pipelines.settings import Settings
from pipelines.summaries.stage import make_summaries
make_summaries(Settings.model_validate_json(sys.stdin.read()), ask=True)
"""


def test_killed_again_and_again_it_loses_at_most_the_last_flush(settings, fake):
    fake.delay = 0.02
    kills = 0
    for _ in range(20):
        child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, cwd=PROJECT)
        assert child.stdin
        child.stdin.write(settings.model_dump_json().encode())
        child.stdin.close()
        begun = fake.requests
        while child.poll() is None and fake.requests < begun + 9:
            time.sleep(0.005)
        if child.poll() is not None:
            assert child.returncode == 0
            break
        child.kill()
        child.wait()
        kills += 1
    extra = settings.extract
    assert kills >= 2
    assert fake.requests - len(fake.asked) <= kills * (extra.flush_results + extra.in_flight)
    rows = make_summaries(settings, ask=True)
    assert (rows.asked, set(rows.statuses)) == (0, {"ok"})
