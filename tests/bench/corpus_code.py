"""The Python files of a home's corpus, their facts and links, for the benches."""

from dataclasses import dataclass
from pathlib import Path

from pipelines.chunking.python import Unparsable, collector_off
from pipelines.code.facts import Facts, file_facts
from pipelines.code.link import Links, link
from pipelines.corpus.decode import decode
from pipelines.corpus.fetch import fetch
from pipelines.corpus.spec import held_spec
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.tables import FILES, read_table


@dataclass(frozen=True)
class CorpusCode:
    """Texts and facts by path, of the files that CPython can parse, and the links among them."""

    root: Path
    texts: dict[str, str]
    facts: dict[str, Facts]
    links: Links


def read_texts(home: Path) -> tuple[Path, dict[str, str]]:
    """Return the source folder of a home whose `corpus_files` is built, and the texts of its Python files."""
    root = fetch(held_spec(Layout(home)), Settings(home=home)).root
    rows = read_table(Layout(home).files, FILES).to_pylist()
    paths = [row["path"] for row in rows if row["format"] == "python"]
    return root, {path: decode((root / path).read_bytes(), python=True).text for path in paths}


def read_code(home: Path) -> CorpusCode:
    """Parse and link the corpus of a home."""
    root, texts = read_texts(home)
    facts = {}
    with collector_off():
        for path, text in texts.items():
            try:
                facts[path] = file_facts(path, text)
            except Unparsable:
                continue
        kept = {path: texts[path] for path in facts}
        return CorpusCode(root, kept, facts, link(facts.values()))
