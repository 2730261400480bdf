"""The nasty cases of model output (tests/cases: l01, l02, l04, l06), and what the model is sent of c08, s01 and w04."""

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest

from pipelines.answer.answerer import Answerer
from pipelines.extract.grammar import written
from pipelines.extract.recipe import CANARY, active_recipe
from pipelines.settings import PROJECT, AnswerSettings, Settings
from tests.extraction import Extracted
from tests.fake_model import said
from tests.support import CASES, case

TAXONOMY = """
version = "1"
types = [{ name = "Thing", definition = "a thing" }]
relations = [
  { name = "USES", definition = "uses" },
  { name = "LIVES_IN", definition = "lives in" },
  { name = "LOCATED_IN", definition = "is located in" },
]
"""


class Scripted:
    """The bank's own fake server with a case's rules, and a rule that answers the canary before them."""

    def __init__(self, folder, rules):
        self.log = folder / "log.jsonl"
        self.log.touch()
        settings = Settings(extract={"model": "fake-model", "taxonomy": folder / "taxonomy.toml"})
        demanded = active_recipe(settings).canary().grammar.removeprefix("root ::= ")
        for rule in [*rules["rules"], rules.get("default", {})]:
            if isinstance(content := said(rule.get("content")), list):
                rule["content"] = written(content)
        rules["rules"].insert(0, {"match": CANARY, "content": json.loads(demanded)})
        (folder / "rules.json").write_text(json.dumps(rules))
        command = [sys.executable, CASES / "_tools" / "fake_llm.py", folder / "rules.json", "--log", self.log]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def texts(self):
        """What was asked for, but for canaries."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["text"] for line in lines if CANARY not in line["text"]]

    def stop(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def scripted(tmp_path):
    """Serve the rules of a case; return what extracts its tree, and the server."""
    (tmp_path / "taxonomy.toml").write_text(TAXONOMY)
    made = []

    def serve(name, rules="rules.json", corpus=None):
        server = Scripted(
            tmp_path, json.loads((case(name).folder / rules).read_text()) if isinstance(rules, str) else rules
        )
        made.append(server)
        if corpus is None:
            case(name).copy_to(tmp_path / "corpus" / "tree")
            corpus = Extracted(
                tmp_path / "corpus",
                {},
                server.url,
                model="fake-model",
                taxonomy=tmp_path / "taxonomy.toml",
                policy="hybrid",
            )
        else:
            corpus.options["llm_urls"] = [server.url]
            corpus.change()
        return corpus, server

    yield serve
    for server in made:
        server.stop()


def named(row):
    return {entity["name"] for entity in row["entities"]}


def stem(path):
    return path.rpartition("/")[2].removesuffix(".md")


def by_stem(corpus):
    return {stem(path): row for path, row in corpus.by_path().items()}


# l01


@pytest.fixture
def broken(scripted):
    corpus, server = scripted("l01")
    return corpus, server, corpus.run()


def test_l01_the_run_ends_and_says_which_chunks_failed(broken):
    corpus, _, failed = broken
    expected = case("l01").expected
    rows = by_stem(corpus)
    assert len(rows) == expected["chunks"]
    assert {name for name, row in rows.items() if row["status"] == "failed"} >= set(expected["must_fail"])
    assert all(row["problem"] and row["detail"] for row in rows.values() if row["status"] == "failed")
    assert failed.keys() == {"."}


def test_l01_the_good_answer_is_kept_and_no_cut_one_is_a_success(broken):
    rows = by_stem(broken[0])
    assert named(rows["ok"]) == {"Alpha", "Beta"}
    assert rows["ok"]["relations"] == [{"source": "Alpha", "target": "Beta", "type": "USES"}]
    assert rows["truncated"]["problem"] == rows["complete_but_length"]["problem"] == "length"


def test_l01_a_success_holds_only_what_the_chunk_says(broken):
    corpus, _, _ = broken
    for name, row in by_stem(corpus).items():
        text = (corpus.root / f"{name}.md").read_text()
        for entity in row["entities"]:
            assert "\0" not in entity["name"]
            entity["name"].encode()
            assert [text[at : at + len(entity["name"])] for at in entity["starts"]] == [entity["name"]] * len(
                entity["starts"]
            )
            assert entity["starts"]
    assert by_stem(corpus)["hugelist"]["ungrounded"] > 2900


def test_l01_no_chunk_is_tried_more_than_three_times_and_a_second_run_asks_only_for_the_failed(broken, scripted):
    corpus, server, _ = broken
    assert max(Counter(server.texts()).values()) <= 3
    failed = {name for name, row in by_stem(corpus).items() if row["status"] == "failed"}
    fine = {"rules": [], "default": {"content": {"entities": [{"name": "Alpha", "type": "Thing"}], "relations": []}}}
    server.log.unlink()
    corpus, again = scripted("l01", fine, corpus)
    assert corpus.run() == {}
    assert len(again.texts()) == len(failed)
    assert all(any(f"MARK_{name} " in text for name in failed) for text in again.texts())


# l02


def test_l02_one_bad_chunk_costs_no_other(scripted):
    corpus, server = scripted("l02", "rules_fail.json")
    failed = corpus.run()
    rows = by_stem(corpus)
    assert [name for name, row in rows.items() if row["status"] != "ok"] == ["d07"]
    assert rows["d07"]["problem"] == "http 500"
    assert "d07" in failed["."]
    assert len({name for row in rows.values() for name in named(row)}) == 12
    server.log.unlink()
    corpus, server = scripted("l02", "rules_ok.json", corpus)
    assert corpus.run() == {}
    assert ["MARK_d07" in text for text in server.texts()] == [True]
    rows = by_stem(corpus)
    assert len({name for row in rows.values() for name in named(row)}) == 13
    assert sum(len(row["relations"]) for row in rows.values()) == 12
    assert corpus.run() == {}
    assert len(server.texts()) == 1


KILLED = """
import json, os, signal, sys
from pipelines.corpus.scan import load_plan
from pipelines.extract.session import Session
from pipelines.layout import Layout
from pipelines.settings import Settings

def killing(done, total):
    if done >= 5:
        os.kill(os.getpid(), signal.SIGKILL)

settings = Settings.model_validate_json(sys.argv[1])
plan = load_plan(Layout(settings.home))
with Session(settings, plan, list(plan), report=lambda what, unit: killing) as session:
    for key in session.todo:
        session.extract(key)
"""


def test_l02_killed_after_five_answers_it_asks_about_the_rest(scripted):
    corpus, server = scripted("l02", "rules_ok.json")
    assert corpus.run() == {}
    undisturbed = corpus.rows()
    server.log.unlink()
    rules = json.loads((case("l02").folder / "rules_ok.json").read_text())
    for rule in rules["rules"]:
        rule["delay"] = 0.2
    shutil.rmtree(corpus.folder)
    corpus.home.layout.partition(".", "extractions").unlink()
    corpus, server = scripted("l02", rules, corpus)
    corpus.change(in_flight=4, flush_results=2)
    command = [sys.executable, "-c", KILLED, corpus.home.settings.model_dump_json()]
    assert subprocess.run(command, cwd=PROJECT).returncode == -signal.SIGKILL
    stored = [row for row in corpus.ledger().table().to_pylist() if row["status"] == "ok"]
    first = len(server.texts())
    assert 4 <= len(stored) <= first <= 5 + 4
    assert corpus.run() == {}
    assert len(server.texts()) - first == 12 - len(stored)
    assert corpus.rows() == undisturbed


# l04


def test_l04_names_of_another_text_are_dropped_and_counted(scripted):
    corpus, _ = scripted("l04")
    corpus.run()
    rows = by_stem(corpus)
    text = (corpus.root / "house.md").read_text()
    assert named(rows["house"]) == {"Baker", "London", "Doctor"}
    for entity in rows["house"]["entities"]:
        assert [text[at : at + len(entity["name"])] for at in entity["starts"]] == [entity["name"]]
    assert [relation["type"] for relation in rows["house"]["relations"]] == ["LIVES_IN"]
    assert rows["nothing"]["entities"] == []
    assert (rows["house"]["ungrounded"], rows["nothing"]["ungrounded"]) == (3, 2)
    assert corpus.totals["grounded_share"] == 3 / 8


# l06


def test_l06_the_models_own_syntax_in_a_text_changes_nothing(scripted):
    corpus, server = scripted("l06")
    assert corpus.run() == {}
    texts = server.texts()
    assert len(texts) == 8
    words = case("l06").expected["words"]
    for name, row in by_stem(corpus).items():
        chunk = (corpus.root / f"{name}.md").read_text().strip()
        assert sum(text.endswith(chunk) for text in texts) == 1
        assert named(row) == {words[name]}


@pytest.mark.parametrize("question", ["What is {chunk}?", "%s and %(name)s?", "$sources ${HOME} {{ x }} {0}"])
def test_l06_the_question_reaches_the_model_unchanged(extracted, fake, question):
    corpus = extracted({})
    case("l06").copy_to(corpus.root)
    corpus.rebuild()
    settings = corpus.home.settings.model_copy(update={"answer": AnswerSettings(evidence=0)})
    with Answerer(settings, k=8) as answerer:
        assert answerer.answer(f"{question} Fmtword Braceword Jinjaword latex").by == "model"
    assert list(fake.asked) == [f"{question} Fmtword Braceword Jinjaword latex"]
    shown = fake.bodies[-1]["messages"][-1]["content"]
    for name in ("fmt", "braces", "jinja"):
        assert (corpus.root / f"{name}.md").read_text().strip() in shown


# c08


def test_c08_no_prompt_is_longer_than_the_model_takes(extracted, fake):
    corpus = extracted({})
    case("c08").copy_to(corpus.root)
    corpus.rebuild()
    fake.act = lambda text: {"status": 400} if len(text) + len(corpus.recipe.system) > 16_000 else None
    assert corpus.run() == {}
    lengths = [sum(len(message["content"]) for message in body["messages"]) for body in fake.bodies]
    assert 0 < max(lengths) <= 16_000
    assert max(len(json.dumps(body)) for body in fake.bodies) < 64_000


# s01


def test_s01_unchanged_text_is_not_sent_again(extracted, fake):
    corpus = extracted({})
    for version in ("v1", "v2"):
        case("s01").copy_to(corpus.root, version)
        corpus.rebuild()
        assert corpus.run() == {}
    assert any("class Root" in text for text in fake.asked)
    assert set(fake.asked.values()) == {1}
    before = fake.requests
    assert {row["path"] for row in corpus.rows()} == {"doc.md", "other.py", "start.py", "trunk.py"}
    assert corpus.run() == {}
    assert fake.requests == before


# w04


def test_w04_no_extraction_row_is_left_of_a_lost_file(extracted, fake, tmp_path):
    corpus = extracted({})
    corpus.root.rmdir()
    case("w04").set_up(corpus.root)
    found = corpus.home.scan(corpus.root)
    for name in ("m2.md", "m4.md"):
        (corpus.root / name).unlink()
    corpus.home.build_scan(found, corpus.root)
    assert corpus.run() == {}
    paths = {row["path"] for row in corpus.rows()}
    assert paths >= {"m0.md", "m1.md", "m3.md", "m5.md", "looks_like.py/real.md"}
    assert not {"m2.md", "m4.md"} & paths
    assert not any("item2" in text or "item4" in text for text in fake.asked)
