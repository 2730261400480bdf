"""`make bench-dense`: how fast units are embedded beside a plain loop, and how fast and how well hybrid search answers.

The rate is of the same 2,048 units of the user's own home, in one run, a part by each in turn. What needs the whole
matrix (latency, one edited file) is left out where `make dense` has not been run; the home is left as it is.
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cgrag import Corpus
from pipelines.corpus.scan import load_plan
from pipelines.dense.build import batches
from pipelines.dense.encoder import load_encoder
from pipelines.dense.index import can_ask_vectors
from pipelines.dense.units import load_units
from pipelines.evaluate.sets import synthetic_questions
from pipelines.layout import Layout
from pipelines.serve.models import model_files
from pipelines.settings import Settings, load_settings
from pipelines.state import chunk_fingerprints
from pipelines.tables import UNITS as UNIT_ROWS
from pipelines.tables import read_table, write_json

UNITS, PARTS, PLAIN_BATCH = 2048, 4, 32


def rates(settings: Settings) -> tuple[float, float]:
    """Units per second of ours and of a plain loop of `model.encode`, over the same units."""
    from sentence_transformers import SentenceTransformer

    layout = Layout(settings.home)
    every = load_units(layout, sorted(load_plan(layout).partitions)).texts
    texts = random.Random(0).sample(every, min(UNITS, len(every)))
    encoder = load_encoder(settings)
    plain = SentenceTransformer(model_files(settings, settings.embed.model), device="cpu")
    plain.max_seq_length = settings.embed.tokens
    encoder.encode(texts[:PLAIN_BATCH], "document")
    plain.encode(texts[:PLAIN_BATCH], show_progress_bar=False)
    seconds = {"ours": 0.0, "plain": 0.0}
    size = -(-len(texts) // PARTS)
    for at in range(0, len(texts), size):
        part = texts[at : at + size]
        begun = time.perf_counter()
        for batch in batches({str(number).encode(): text for number, text in enumerate(part)}):
            encoder.encode([part[int(key)] for key in batch], "document")
        between = time.perf_counter()
        for first in range(0, len(part), PLAIN_BATCH):
            plain.encode(part[first : first + PLAIN_BATCH], show_progress_bar=False)
        seconds["ours"] += between - begun
        seconds["plain"] += time.perf_counter() - between
    return len(texts) / seconds["ours"], len(texts) / seconds["plain"]


def latencies(settings: Settings, questions: list[str], mode: str) -> list[float]:
    """Seconds of each question, warm."""
    corpus = Corpus(settings.home)
    corpus.search(questions[0], mode=mode)  # type: ignore[arg-type]
    seconds = []
    for question in questions:
        begun = time.perf_counter()
        corpus.search(question, 5, mode=mode)  # type: ignore[arg-type]
        seconds.append(time.perf_counter() - begun)
    return sorted(seconds)


def cgrag(home: Path, *words: str) -> tuple[float, str]:
    """Seconds of a whole process, and what it said."""
    begun = time.perf_counter()
    command = [str(Path(sys.executable).parent / "cgrag"), *words]
    done = subprocess.run(
        command, env=os.environ | {"CGRAG_HOME": str(home)}, check=True, capture_output=True, text=True
    )
    return time.perf_counter() - begun, done.stderr


def main() -> None:
    """Print the table."""
    settings = load_settings()
    table = Table("what", "figure", "goal")
    ours, plain = rates(settings)
    table.add_row("embedding, units/s", f"{ours:.0f}", "")
    table.add_row("a plain loop of model.encode", f"{plain:.0f}", "")
    table.add_row("ours / plain", f"{ours / plain:.2f}", "1.3")
    if can_ask_vectors(settings):
        layout = Layout(settings.home)
        asked = synthetic_questions(settings, chunk_fingerprints(layout, load_plan(layout)))["rag_questions"][:200]
        for mode in ("lexical", "dense", "hybrid"):
            found = latencies(settings, [row["question"] for row in asked], mode)
            p50, p95 = statistics.median(found), found[int(len(found) * 0.95)]
            table.add_row(f"{mode}, warm, p50 / p95", f"{p50 * 1000:.1f} / {p95 * 1000:.1f} ms", "30 ms (hybrid)")
        with tempfile.TemporaryDirectory() as folder:
            write_json(Path(folder) / "asked.json", {"rag_questions": asked})
            words = (str(Path(folder) / "asked.json"), "--out", str(Path(folder) / "out.json"), "--mode", "hybrid")
            seconds, _ = cgrag(settings.home, "search-dataset", *words)
            table.add_row(f"search-dataset, {len(asked)} questions", f"{seconds:.1f} s", "10 s")
            seconds, _ = cgrag(settings.home, "search", asked[0]["question"], "--mode", "hybrid")
            table.add_row("search --mode hybrid, cold", f"{seconds:.1f} s", "")
            table.add_row("one edited file", edited(settings, Path(folder)), "its own units")
    Console().print(table)


def edited(settings: Settings, folder: Path) -> str:
    """How many units a plain run embeds in a copy of the home, after one file of the corpus has grown by a line."""
    home = folder / "home"
    shutil.copytree(settings.home, home, ignore=shutil.ignore_patterns("llm", "dagster", "neo4j"))
    layout = Layout(home)
    key = next(iter(load_plan(layout)))
    rows = read_table(layout.partition(key, "units"), UNIT_ROWS)["path"].to_pylist()
    path = max(sorted(set(rows)), key=rows.count)
    (file,) = layout.sources.glob(f"*/tree/*/{path}")
    file.write_text(file.read_text() + "\none more line\n")
    _, said = cgrag(home, "run")
    found = re.search(r"Embedding: ([\d,]+) units", said)
    return f"{found[1] if found else 0} units embedded; the file has {rows.count(path)}"


if __name__ == "__main__":
    main()
