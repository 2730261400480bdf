"""The code of a page: what it imports from the corpus, and with which parameters it calls that."""

import re
from collections.abc import Iterator, Mapping

from pipelines.extract.taxonomy import Taxonomy
from pipelines.graph.names import name_id
from pipelines.rules.mentions import VARIABLE, Found, Mention
from pipelines.rules.prose import Prose
from pipelines.rules.symbols import Context, Symbol, SymbolTable

_ARGUMENT = re.compile(r"[(,]\s*([A-Za-z_]\w*)\s*=(?!=)", re.ASCII)
_FROM = re.compile(r"^[ \t>]*from[ \t]+([\w.]+)[ \t]+import\b", re.MULTILINE | re.ASCII)
_MADE = re.compile(r"^[ \t>]*([A-Za-z_]\w*)[ \t]*=[ \t]*([A-Za-z_]\w*)\(", re.MULTILINE | re.ASCII)
_LONGEST_CALL = 4_000


def read_code(page: Prose, text: str, context: Context, table: SymbolTable, taxonomy: Taxonomy) -> Found:
    """Return mentions of what the page's code imports from the corpus, wherever the code uses it.

    With it come the module in the import, methods called of a variable that an imported class was called for, and
    parameters: a keyword of a call is defined in what is called, where the taxonomy says so of a Variable.
    """
    found = Found()
    meant = {name: meaning.symbol for name in page.imports if (meaning := table.meaning(name, context)) is not None}
    if not meant:
        return found
    names = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(meant, key=len, reverse=True)))})(?!\w)")
    for start, end in _blocks(page):
        found.mentions += _modules(text, start, end, table)
        found.mentions += _methods(text, start, end, meant, table)
        for match in names.finditer(text, start, end):
            symbol = meant[match[0]]
            mention = Mention(*match.span(), symbol.id, symbol.type, "import")
            found.mentions.append(mention)
            if relation := _part_of(symbol, taxonomy):
                for first, last in _arguments(text, match.end(), min(end, match.end() + _LONGEST_CALL)):
                    argument = Mention(first, last, name_id(text[first:last]), VARIABLE, "argument")
                    found.terms.setdefault(argument.entity, (text[first:last], VARIABLE))
                    found.mentions.append(argument)
                    found.arguments.append((argument, relation, mention))
    return found


def _modules(text: str, start: int, end: int, table: SymbolTable) -> Iterator[Mention]:
    for match in _FROM.finditer(text, start, end):
        if module := table.module(match[1]):
            yield Mention(*match.span(1), module.id, module.type, "import")


def _methods(text: str, start: int, end: int, meant: Mapping[str, Symbol], table: SymbolTable) -> Iterator[Mention]:
    """Methods in `name.method(` after `name = Class(`, the class being imported and having the method itself."""
    for made in _MADE.finditer(text, start, end):
        owner = meant.get(made[2])
        if owner is None or owner.type != "Class":
            continue
        for match in re.compile(rf"(?<![\w.]){re.escape(made[1])}\.([A-Za-z_]\w*)\(").finditer(text, made.end(), end):
            if method := table.by_id.get(f"{owner.id}.{match[1]}"):
                yield Mention(*match.span(1), method.id, method.type, "import")


def _part_of(symbol: Symbol, taxonomy: Taxonomy) -> str:
    relation = taxonomy.relation("DEFINED_IN")
    allowed = VARIABLE in taxonomy.type_names and relation and relation.allows(VARIABLE, symbol.type)
    return "DEFINED_IN" if allowed and symbol.type in ("Class", "Function") else ""


def _blocks(page: Prose) -> Iterator[tuple[int, int]]:
    """The spans of code, lines that follow each other together."""
    start = end = -1
    for first, last in page.code:
        if first != end:
            if end >= 0:
                yield start, end
            start = first
        end = last
    if end >= 0:
        yield start, end


def _arguments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the keywords of the call whose bracket opens at `start`; of calls in it, none."""
    if text[start : start + 1] != "(":
        return
    depth, at = 0, start
    while at < end:
        character = text[at]
        if character in "'\"":  # a string, to its end
            mark = character * 3 if text.startswith(character * 3, at) else character
            closing = text.find(mark, at + len(mark), end)
            at = end if closing < 0 else closing + len(mark)
            continue
        if (at == start or (depth == 1 and character == ",")) and (match := _ARGUMENT.match(text, at, end)):
            yield match.span(1)
        depth += (character in "([{") - (character in ")]}")
        if not depth:
            return
        at += 1
