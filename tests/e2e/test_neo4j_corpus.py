"""The default corpus in a real Neo4j: loaded by the real command, asked in both stores, and by the README's Cypher.

With README_UPDATE=1 the answers in the README are written anew instead of being compared; CGRAG_TEST_PICTURES names a
folder for the picture of a neighbourhood.
"""

import json
import os
import re

import pytest

from tests.e2e.conftest import PROJECT
from tests.neo4j_server import home_rows

README = PROJECT / "README.md"
UPDATE = os.environ.get("README_UPDATE")
PICTURES = os.environ.get("CGRAG_TEST_PICTURES")
_BLOCK = re.compile(r"```cypher\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
RECIPES = [(match[1], match[2]) for match in _BLOCK.finditer(README.read_text())]
CORPUS = "vllm-0.10.1"


@pytest.fixture(scope="module")
def loaded(vllm, neo4j):
    """The command on the default corpus, with its graph in the database."""

    def run(*words, **settings):
        return vllm(*words, **neo4j.environment, **settings)

    run("run", "--select", "neo4j_graph")
    return run


def test_the_database_has_as_many_of_everything_as_the_home(loaded, vllm_home, neo4j):
    from pipelines.corpus.scan import load_plan
    from pipelines.layout import Layout

    layout = Layout(vllm_home)
    counts = {name: len(rows) for name, rows in home_rows(layout, load_plan(layout)).items()}
    (row,) = json.loads(loaded("neo4j", "status", "--json").stdout)["corpora"]
    assert (row["corpus"], row["state"]) == (CORPUS, "ready")
    said = row["counts"]
    assert counts == {
        "documents": said["document"], "chunks": said["chunk"], "entities": said["entity"], "edges": said["edge"],
        "mentions": said["mention"],
    }  # fmt: skip
    for label in ("Document", "Chunk", "Entity"):
        query = f"MATCH (n:{label} {{corpus: $corpus}}) RETURN count(n)"
        assert neo4j.values(query, corpus=CORPUS) == [[said[label.lower()]]]


def test_a_second_run_has_nothing_to_do(loaded):
    assert "Nothing to do" in loaded("run").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["graph", "split_enc_dec_inputs"],
        ["graph", "BaseModelLoader", "--relation", "INHERITS_FROM", "--direction", "in", "--hops", "3"],
        ["graph", "AsyncLLMEngine.__init__", "--to", "weak_bind", "--relation", "CALLS", "--direction", "out"],
        ["graph", "LoRARequest", "--all-origins", "--json"],
        ["search", "Who is responsible for invoking `make_zmq_socket`?", "--graph", "--json"],
        ["search", "What does the `load_model` of the parent class of `TensorizerLoader` call?", "--graph"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_both_stores_answer_alike(loaded, words):
    assert loaded(*words, "--store", "neo4j").stdout == loaded(*words, "--store", "duckdb").stdout != ""


@pytest.mark.parametrize(
    "words",
    [["search", "x", "--store", "neo4j"], ["graph", "LLM", "--store", "oracle"]],
)
def test_wrong_usage(vllm, words):
    said = vllm(*words, check=False)
    assert (said.returncode, "--store" in said.stderr) == (2, True)


def test_near_names_are_told_from_either(loaded):
    said = [loaded("graph", "LoraReqest", "--store", store, check=False) for store in ("duckdb", "neo4j")]
    assert said[0].stderr == said[1].stderr and "LoRARequest" in said[0].stderr


def test_the_readme_has_recipes():
    assert len(RECIPES) >= 6


@pytest.mark.parametrize(("query", "shown"), RECIPES, ids=[query.splitlines()[0][:60] for query, _ in RECIPES])
def test_a_recipe_of_the_readme_answers_what_it_shows(loaded, neo4j, query, shown):
    with neo4j.driver() as driver, driver.session() as session:
        result = session.run(query, corpus=CORPUS)
        rows = [result.keys(), *([str(value) for value in record.values()] for record in result)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    answer = "".join(f"{line}\n" for line in lines)
    assert len(rows) > 1
    if UPDATE:
        README.write_text(
            README.read_text().replace(f"{query}```\n\n```text\n{shown}```", f"{query}```\n\n```text\n{answer}```")
        )
    else:
        assert answer == shown


def test_a_picture_of_a_neighbourhood(loaded, neo4j):
    around = (
        "MATCH (a:Class {corpus: $corpus, id: 'vllm/lora/request.py::LoRARequest'})-[r]-(b:Entity) "
        "WHERE r.origin <> 'llm' WITH a, r, b ORDER BY type(r), b.id "
        "WITH a, type(r) AS relation, startNode(r) = a AS outward, collect(b.name)[..4] AS names "
        "RETURN a.name, relation, outward, names ORDER BY relation, outward"
    )
    rows = neo4j.values(around, corpus=CORPUS)
    assert {row[1] for row in rows} >= {"CALLS", "DEFINED_IN", "IMPORTS"}
    if PICTURES:
        _draw(rows)


def _draw(rows):
    """A star: the class in the middle, around it what it is related to, a colour for each relation."""
    import math

    import matplotlib.pyplot as plt

    ends = [(relation, outward, name) for _, relation, outward, names in rows for name in names]
    colours = dict(zip(sorted({end[0] for end in ends}), plt.get_cmap("tab10").colors, strict=False))
    figure, axes = plt.subplots(figsize=(10, 6))
    for number, (relation, outward, name) in enumerate(ends):
        angle = 2 * math.pi * number / len(ends)
        x, y = 1.6 * math.cos(angle), math.sin(angle)
        style = {"arrowstyle": "-|>" if outward else "<|-", "color": colours[relation], "shrinkB": 6}
        axes.annotate("", (x, y), (0.3 * x, 0.16 * y), arrowprops=style)
        left = math.cos(angle) < 0
        axes.text(
            x + (-0.03 if left else 0.03),
            y,
            name.rpartition("/")[2],
            ha="right" if left else "left",
            va="center",
            fontsize=9,
        )
    axes.text(
        0, 0, rows[0][0], ha="center", va="center", weight="bold", bbox={"boxstyle": "round", "facecolor": "white"}
    )
    for relation, colour in colours.items():
        axes.plot([], [], color=colour, label=relation)
    axes.legend(loc="upper right", frameon=False)
    axes.set(xlim=(-3.2, 3.2), ylim=(-1.2, 1.2))
    axes.axis("off")
    figure.savefig(PROJECT / PICTURES / "neighbourhood.png", dpi=110, bbox_inches="tight")
    plt.close(figure)
