"""One page of docs: what it mentions, which heading says so, and what stands in one sentence."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from pipelines.extract.taxonomy import Taxonomy
from pipelines.rules.code import read_code
from pipelines.rules.mentions import CONCEPT, VARIABLE, Found, Heading, Mention
from pipelines.rules.names import (
    abbreviations,
    definitions,
    is_distinct,
    is_term,
    options,
    spans_of_words,
    words_of,
    written_names,
)
from pipelines.rules.prose import Prose
from pipelines.rules.symbols import Context, SymbolTable

_WEAK = ("definition", "option", "heading")
"""Bindings that give way to others of the same place."""
_MOST_IN_SENTENCE = 6
"""A sentence that names more is a list, whatever its form."""
_LONGEST_TERM = 4
_SEPARATORS = frozenset(" ,;&/|`*_()[]\n\t\r:-")


class Terms:
    """Titles that one heading of the corpus alone has: their words elsewhere mean it.

    They count as the title has them: "Data Structure" is no name of every data structure. A title of one word has to be
    a page's, and unlike plain words. What more than `MOST_PAGES` pages say is the language of the corpus, and no
    reference to one section.
    """

    MOST_PAGES = 10

    def __init__(self, headings: Iterable[Heading], pages: Iterable[Prose]) -> None:
        self._of_words: dict[tuple[str, ...], set[Heading]] = defaultdict(set)
        for heading in headings:
            title = _bare(heading.title)
            words = words_of(title)
            self._of_words[words].add(heading)
        self._of_words = {
            words: found for words, found in self._of_words.items() if len(found) == 1 and _is_named(next(iter(found)))
        }  # fmt: skip
        self._firsts = {words[0] for words in self._of_words}
        said = Counter(
            entity
            for page in pages
            for entity in {found.entity for found in self.mentions(page.text, 0, len(page.text))}
        )
        common = {entity for entity, many in said.items() if many > self.MOST_PAGES}
        self._of_words = {
            words: found for words, found in self._of_words.items() if next(iter(found)).entity not in common
        }

    def mentions(self, text: str, start: int, end: int) -> Iterator[Mention]:
        """Yield the longest terms between two offsets."""
        words = spans_of_words(text, start, end)
        at = 0
        while at < len(words):
            step = 1
            for many in range(min(_LONGEST_TERM, len(words) - at), 0, -1) if words[at][0] in self._firsts else ():
                found = self._of_words.get(tuple(word for word, _, _ in words[at : at + many]))
                first, last = words[at][1], words[at + many - 1][2]
                if found and _is_said(next(iter(found)), text[first:last]):
                    yield Mention(first, last, next(iter(found)).entity, CONCEPT, "heading")
                    step = many
                    break
            at += step


def _bare(title: str) -> str:
    return title.strip(" `*_")


def _is_named(heading: Heading) -> bool:
    title = _bare(heading.title)
    return is_term(title) and (" " in title or (heading.level == 1 and is_distinct(title)))


def _is_said(heading: Heading, text: str) -> bool:
    return _bare(heading.title) == " ".join(text.split())


def read_page(
    page: Prose,
    text: str,
    headings: Sequence[Heading],
    labels: Sequence[Mention],
    context: Context,
    table: SymbolTable,
    terms: Terms,
    taxonomy: Taxonomy,
) -> Found:
    """Return what the rules find on a page; `headings` are in order, `terms` those of the whole corpus.

    `text` is that of the page, `labels` what the texts of its links lead to: links have edges of their own.

    A heading (before the first: the page) references what its text mentions; two things that one sentence names
    reference each other in its order. A relation that the taxonomy does not allow between their types is none, and
    without the type Concept there are no terms.
    """
    found = Found()
    starts = [heading.start for heading in headings]

    def around(offset: int) -> str:
        at = bisect_right(starts, offset) - 1
        return headings[at].entity if at >= 0 else context.path

    def is_own(mention: Mention) -> bool:
        """Whether a heading is what its own section mentions: as an entity, or by its words."""
        source = around(mention.start)
        title = source.rpartition("::")[2].rpartition(" > ")[2]
        said = set(words_of(page.text[mention.start : mention.end]))
        return _is_about(source, mention.entity) or said <= set(words_of(title))

    has_concepts = CONCEPT in taxonomy.type_names
    others = list(labels)
    if has_concepts:
        others += (found.term(page.text, start, end, CONCEPT, "definition") for _, start, end in definitions(page.text))
    others.sort()
    for start, end in page.sentences():
        named = list(_symbols(page.text, start, end, context, table))
        named += others[bisect_left(others, (start,)) : bisect_left(others, (end,))]
        if VARIABLE in taxonomy.type_names:
            for span in options(page.text, start, end):
                kind = table.type_of(page.text[slice(*span)])
                named.append(found.term(page.text, *span, kind if kind in taxonomy.type_names else VARIABLE, "option"))
        if has_concepts:
            named += (
                mention
                for mention in terms.mentions(page.text, start, end)
                if not _is_about(around(mention.start), mention.entity)
            )
        kept = _apart(named)
        found.mentions += kept
        for mention in kept:
            source = around(mention.start)
            relation = taxonomy.reference(CONCEPT, mention.type)
            if relation and mention.binding != "label" and not is_own(mention):
                found.references.append((source, relation, mention))
        found.together += _together(page.text, kept, taxonomy)
    if has_concepts:
        found.synonyms = _synonyms(page.text, found, taxonomy)
    in_code = read_code(page, text, context, table, taxonomy)
    found.mentions += in_code.mentions
    found.arguments = in_code.arguments
    found.terms |= in_code.terms
    said = {mention.entity for mention in found.mentions}
    found.terms = {entity: term for entity, term in found.terms.items() if entity in said}
    return found


def _symbols(text: str, start: int, end: int, context: Context, table: SymbolTable) -> Iterator[Mention]:
    for written in written_names(text, start, end):
        meaning = table.meaning(written.name, context)
        if meaning is None:
            continue
        symbol, binding = meaning
        if written.is_plain and written.name.islower() and not (binding == "import" or symbol.id in context.linked):
            continue
        yield Mention(written.start, written.end, symbol.id, symbol.type, binding)


def _synonyms(text: str, found: Found, taxonomy: Taxonomy) -> list[tuple[Mention, str, Mention]]:
    relation = taxonomy.relation("RELATES_TO")
    if relation is None or not relation.allows(CONCEPT, CONCEPT):
        return []
    known = {(mention.start, mention.end): mention for mention in found.mentions}
    pairs = []
    for term, short in abbreviations(text):
        ends = []
        for span in (short, term):
            if span not in known:
                known[span] = found.term(text, *span, CONCEPT, "abbreviation")
                found.mentions.append(known[span])
            ends.append(known[span])
        pairs.append((ends[0], relation.name, ends[1]))
    return pairs


def _apart(mentions: Iterable[Mention]) -> list[Mention]:
    """Mentions of which none lies in another: the first of those that begin together is the longest."""
    kept: list[Mention] = []
    for mention in sorted(set(mentions), key=lambda found: (found.start, -found.end, found.binding in _WEAK, found)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def _is_about(source: str, entity: str) -> bool:
    """Whether a heading is the entity itself, or lies below it."""
    return source == entity or source.startswith((f"{entity} > ", f"{entity}::"))


def _together(text: str, mentions: Sequence[Mention], taxonomy: Taxonomy) -> Iterator[tuple[Mention, str, Mention]]:
    """Pairs of one sentence, without siblings of a list and names of which one holds the other."""
    first = {mention.entity: mention for mention in reversed(mentions)}
    ordered = sorted(first.values())
    if len(ordered) > _MOST_IN_SENTENCE:
        return
    for one, other in combinations(ordered, 2):
        names = [text[mention.start : mention.end].lower() for mention in (one, other)]
        if names[0] in names[1] or names[1] in names[0] or _are_siblings(text, one, other, mentions):
            continue
        relation = taxonomy.reference(one.type, other.type)
        if relation:
            yield one, relation, other


def _are_siblings(text: str, one: Mention, other: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether nothing but other names, commas, "and" and "or" stand between two names."""
    between = text[one.end : other.start]
    for mention in mentions:
        if one.end <= mention.start and mention.end <= other.start:
            between = between.replace(text[mention.start : mention.end], " ")
    words = "".join(" " if character in _SEPARATORS else character for character in between).split()
    return all(word in ("and", "or") for word in words)
