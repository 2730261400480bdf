"""Question sets that any corpus with docs gives by itself. They are synthetic, and say so in name, ids and note.

Two kinds, each masked so that a text is not its own answer:
- headings: the trail of a heading asks for its section; the truth is the text *below* the heading. Since the index has
  the heading too, this is a search for a known item, near 1 where all is well: read the links for how good it is.
- links: a sentence in which someone linked to something, without its links, asks for what they lead to; no arm may
  hand over a chunk that holds the sentence itself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.evaluate.links import Link, Targets, find_links
from pipelines.evaluate.places import Span
from pipelines.lexical.tokens import query_terms
from pipelines.tables import digest

VERSION = 1
"""Raise it when the same corpus gives other questions."""
NOTE = "Synthetic: made from headings and links of the corpus's own docs, not asked by people."
PER_SPLIT = 100
_LEAST_BODY = 100
_LEAST_TARGET = 50
_LEAST_TERMS = 4
_LONGEST_SENTENCE = 1_000
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'*`]*\s+(?=[A-Z\[<`*:(\"'])")
_BLOCK_END = re.compile(r"\n[ \t]*\n|\n[ \t]*(?=[-*+|#]\s|\d+[.)]\s|\.\. |:{3}|={3}|-{3})")


def docs_questions(
    corpus: str, texts: Mapping[str, str], outline: Sequence[Mapping[str, Any]], per_split: int = PER_SPLIT
) -> dict[str, Any]:
    """Return a question file of at most `per_split` questions of each kind, the same on every machine.

    Args:
        texts: the decoded text of each file, by path.
        outline: rows as in tables.OUTLINE, by path and start.

    Which questions are taken, where there are more, is decided by their hashes: an edit elsewhere changes none of them.
    """
    targets = Targets(texts, outline)
    found: dict[str, list[Asked]] = {"headings": list(_headings(targets)), "doc links": [], "code links": []}
    for path, headings in sorted(targets.headings.items()):
        for question in _linked(path, texts[path], headings, targets):
            found["doc links" if question[1][0].path in targets.headings else "code links"].append(question)
    rows: list[dict[str, Any]] = []
    for split, questions in found.items():
        by_text: dict[str, dict[str, Any]] = {}
        for text, sources, masked in questions:
            row = {
                "question_id": f"synthetic-docs-{digest(text, sources)[:12]}",
                "question": text,
                "split": split,
                "sources": [_source(span) for span in sources],
                "masked": [_source(span) for span in masked],
            }
            by_text.setdefault(text, row)
        rows += sorted(by_text.values(), key=lambda row: str(row["question_id"]))[:per_split]
    return {"synthetic": "docs", "note": NOTE, "corpus": corpus, "version": VERSION, "rag_questions": rows}


Asked = tuple[str, list[Span], list[Span]]
"""A question, its sources, and what is masked."""


def _headings(targets: Targets) -> Iterator[Asked]:
    names = Counter(row["name"] for rows in targets.headings.values() for row in rows)
    for _, rows in sorted(targets.headings.items()):
        for row in rows:
            body = targets.body(row)
            long_enough = body and body.end - body.start >= _LEAST_BODY and len(query_terms(row["name"])) >= 2
            if body and long_enough and names[row["name"]] == 1:
                yield row["name"], [body], []


def _linked(path: str, text: str, headings: Sequence[Mapping[str, Any]], targets: Targets) -> Iterator[Asked]:
    """Yield a question for each sentence whose links lead to other files."""
    sentences: dict[tuple[int, int], list[tuple[Link, Span]]] = {}
    links = list(find_links(path, text))
    for link in links:
        target = targets.resolve(link)
        if target and target.path != path and target.end - target.start >= _LEAST_TARGET:
            sentences.setdefault(_sentence(text, link.start, link.end), []).append((link, target))
    for (start, end), found in sentences.items():
        gone = {link.start for link, _ in found}
        inside = [link for link in links if start <= link.start and link.end <= end]
        words = _without_links(text, start, end, inside, gone)
        is_table = re.search(r"^\s*\|", text[start:end], re.MULTILINE)
        if is_table or end - start > _LONGEST_SENTENCE or len(query_terms(words)) < _LEAST_TERMS:
            continue
        trail = [row["name"] for row in headings if row["start"] <= start < row["end"]][-1:]
        question = "\n".join([*trail, words])
        kind = found[0][1].path in targets.headings
        sources = [target for _, target in found if (target.path in targets.headings) == kind]
        yield question, list(dict.fromkeys(sources)), [Span(path, start, end)]


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence around [start, end): within its paragraph, list item or table row."""
    blocks = [match.end() for match in _BLOCK_END.finditer(text, 0, start)][-1:] or [0]
    stop = _BLOCK_END.search(text, end)
    first, last = blocks[0], stop.start() if stop else len(text)
    before = [match.end() for match in _SENTENCE_END.finditer(text, first, start)][-1:] or [first]
    after = _SENTENCE_END.search(text, end, last)
    return before[0], after.start() if after else last


def _without_links(text: str, start: int, end: int, links: Sequence[Link], gone: set[int]) -> str:
    """The words of a sentence: an ellipsis for each link that is asked for, of the others what they show."""
    pieces, at = [], start
    for link in links:
        pieces += [text[at : link.start], "…" if link.start in gone else link.label]
        at = link.end
    shown = re.sub(r"\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])", r"\1", "".join([*pieces, text[at:end]]))
    words = re.sub(r"[*`|#]+|\A\s*(?:[-+]|\d+[.)])\s", " ", shown)
    return re.sub(r"\s+([.,;:!?)])(?!\w)", r"\1", re.sub(r"\s+", " ", words)).strip()


def _source(span: Span) -> dict[str, Any]:
    return {"file_path": span.path, "first_character_index": span.start, "last_character_index": span.end}
