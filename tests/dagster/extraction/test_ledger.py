"""What the commands about the ledger tell and do: the plan, its recipes, the collector."""

import shutil

from pipelines.corpus.scan import load_plan
from pipelines.extract.partition import stored_rows


def statuses(home, name=""):
    rows = [row for key in load_plan(home.layout) for row in stored_rows(home.layout, key)]
    return [row["status"] for row in sorted(rows, key=lambda row: row["path"]) if row["path"].endswith(name)]


def test_the_plan_says_what_is_left_and_what_it_costs(built, cli):
    first = cli("plan", "--json").json["extraction"]
    assert (first["chunks"], first["partitions"], first["seconds"]) == (9, 3, None)
    assert first["prompt_tokens"] > 1000
    cli("run", "--llm-chunks", "4")
    second = cli("plan", "--json").json["extraction"]
    assert (second["chunks"], second["prompt_tokens"], second["completion_tokens"]) == (5, 500, 50)
    assert second["seconds"] > 0
    assert "5 chunks of" in cli("plan").out
    extraction = cli("status", "--json").json["extraction"]
    assert extraction["rate"] > 0
    assert extraction["seconds_left"] > 0


def test_the_ledger_tells_what_it_holds_by_recipe_and_compares_two(built, home, fake, cli, monkeypatch):
    assert [row["ok"] for row in cli("ledger", "stats", "--json").json["recipes"]] == [0]
    cli("run", "--llm-chunks", "4")
    monkeypatch.setenv("CGRAG_EXTRACT__REVISION", "2")
    cli("run", "--select", "extractions", "--yes")
    document = cli("ledger", "stats", "--json").json
    first, second = sorted(document["recipes"], key=lambda row: row["ok"])
    assert (first["ok"], second["ok"], second["failed"], second["segments"]) == (4, 9, 0, 1)
    assert document["active"] == second["recipe"]
    assert "(active)" in cli("ledger", "stats").out
    sides = cli("ledger", "compare", first["recipe"], second["recipe"], "--json").json
    assert (sides["both_ok"], sides["names_in_common"]) == (4, 1.0)
    assert [side["ok"] for side in sides["sides"]] == [4, 9]
    assert "4 chunks are ok in both" in cli("ledger", "compare", first["recipe"], second["recipe"]).out
    assert cli("ledger", "compare", first["recipe"], "nothing").code == 1


def test_the_collector_deletes_just_what_no_chunk_needs(built, home, fake, cli):
    cli("run", "--select", "extractions", "--yes")
    shutil.rmtree(built / "c")
    cli("run")
    assert list(cli("ledger", "gc", "--json").json["deleted"].values()) == [2]
    assert list(cli("ledger", "gc", "--json").json["deleted"].values()) == [0]
    cli("run", "--select", "extractions", "--yes")
    assert fake.requests == 9
    assert statuses(home) == ["ok"] * 7


def test_an_older_recipe_may_be_made_the_active_one(built, home, fake, cli, monkeypatch):
    cli("run", "--select", "extractions", "--yes")
    old = cli("ledger", "stats", "--json").json["active"]
    monkeypatch.setenv("CGRAG_EXTRACT__REVISION", "2")
    cli("run")
    assert cli("status", "--json").json["extraction"]["pending"] == 9
    monkeypatch.setenv("CGRAG_EXTRACT__RECIPE", old)
    cli("run")
    assert cli("status", "--json").json["extraction"]["ok"] == 9
    assert fake.requests == 9
