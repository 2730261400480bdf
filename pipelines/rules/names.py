"""Names in prose: what is written as code is, what a heading or a definition makes a term."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from pipelines.extract.names import is_identifier

_WRITTEN = re.compile(
    r":(?:py:)?(?:class|func|meth|mod|attr|exc|data|obj|const):`(?P<role>[^`\n]{1,200})`"
    r"|(?P<mark>`{1,2})(?P<ticked>[^`\n]{1,200})(?P=mark)"
    r"|(?<![A-Za-z0-9_.@$%~/\\-])(?P<bare>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?P<call>\(\))?"
    r"(?![A-Za-z0-9_/\\-])"
)
_CODE = re.compile(r"[~!@]?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\([^`]*\))?(?:=.*)?", re.ASCII)
_OPTION = re.compile(
    r"(--?[A-Za-z][\w-]*)(?:[= ].*)?|([a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=.*)?", re.ASCII
)
_ROLE_TARGET = re.compile(r"[^<]*<([^<>\s]+)>")
_BOLD = re.compile(r"(?<![*\w])\*\*(?P<bold>[^*\n]{2,60})\*\*(?![*\w])")
_DEFINED = re.compile(
    r"(?:\A|(?<=[.!?]\s)|(?<=\n\n))[ \t]*`?(?P<term>[A-Z][\w+#-]*(?: [\w+#-]+){0,3}?)`?"
    r"(?: \([A-Z][\w-]*\))? (?:is|are) (?:an?|the) (?!same|only|following|first|last|main|best|most)"
)
_ABBREVIATED = re.compile(r"(?P<long>(?:[A-Za-z][\w-]*[ \t]){2,5})\((?P<short>[A-Z][A-Za-z]{1,5})s?\)")
_WORD = re.compile(r"[^\W_](?:[\w+#-]*[\w+#])?")
_MOST_WORDS = 4
_FUNCTION_WORDS = """
a about above add adjust all allow allows also an and any are as at be before below both but by can could currently
default do does each either enable ensure every example examples exceed exceeds first following for from has have
here how however if important improve improved improves in install into is it its limitation limitations more most
must need next no not note notes of ok on once one only optional or other our out please prerequisite prerequisites
recommended required run same second see set should simplified since so some start step such summary support
supports than that the their them then there these they this those through tip to todo two under up usage use used
using verify very via warning we what when where which while who why will with within without yes you your
"""
_NO_TERM = frozenset(_FUNCTION_WORDS.split())
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*")


class Written(NamedTuple):
    """A name as it stands in a text."""

    name: str
    start: int
    end: int
    """Of the name itself, without marks around it."""
    is_plain: bool
    """Whether only its marks tell it from a word of the language."""
    is_marked: bool = False
    """Whether it stands between back-ticks."""


def written_names(text: str, start: int = 0, end: int | None = None) -> Iterator[Written]:
    """Yield what is written as code is: in back-ticks or a role, dotted, called, in CamelCase or snake_case.

    A plain word counts only between marks: `request`, `Model`.

    >>> [(found.name, found.is_plain) for found in written_names("A `Model`, a request, LLMEngine, run_it, `go()`.")]
    [('Model', True), ('LLMEngine', False), ('run_it', False), ('go', False)]
    """
    for match in _WRITTEN.finditer(text, start, len(text) if end is None else end):
        if match["bare"]:
            if match["call"] or is_code(match["bare"]):
                yield Written(match["bare"], *match.span("bare"), is_plain=False)
            continue
        group = "role" if match["role"] else "ticked"
        inside = match[group]
        target = _ROLE_TARGET.fullmatch(inside) if group == "role" else None
        code = _CODE.fullmatch(target[1] if target else inside.strip())
        if code:
            at = match.start(group) + inside.index(code[1])
            plain = not (code[2] or is_code(code[1]))
            yield Written(code[1], at, at + len(code[1]), plain, is_marked=True)


def options(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of options of a command line, parameters and environment variables between back-ticks.

    A parameter is snake_case; a variable of the environment is called so in the sentence, or given a value.

    >>> text = "Set `--enable-lora`, `max_len` or `HF_TOKEN=…`, of `VEC_SIZE`."
    >>> [text[start:end] for start, end in options(text, 0, len(text))]
    ['--enable-lora', 'max_len', 'HF_TOKEN']
    """
    is_about_environment = re.search(r"\benv(?:ironment)?\b", text[start:end], re.IGNORECASE)
    for match in _WRITTEN.finditer(text, start, end):
        inside = (match["ticked"] or "").strip()
        found = _OPTION.fullmatch(inside)
        if found and (not (found[2] or "").isupper() or "=" in inside or is_about_environment):
            at = match.start("ticked") + match["ticked"].index(found[1] or found[2])
            yield at, at + len(found[1] or found[2])


def abbreviations(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the spans of a term and of its abbreviation behind it, whose capitals begin the term's words.

    >>> text = "Use the Mixture of Experts (MoE), or pipeline parallelism (PP), now (NOW)."
    >>> [(text[a:b], text[c:d]) for (a, b), (c, d) in abbreviations(text)]
    [('Mixture of Experts', 'MoE'), ('pipeline parallelism', 'PP')]
    """
    for match in _ABBREVIATED.finditer(text):
        letters = [letter.lower() for letter in match["short"] if letter.isalpha() and letter != "s"]
        words = list(_WORD.finditer(text, match.start("long"), match.end("long")))
        for many in range(len(letters), len(words) + 1):
            tail = words[len(words) - many :]
            initials = [word[0][0].lower() for word in tail]
            if many > 1 and initials[0] == letters[0] and _in_order(letters, initials):
                yield (tail[0].start(), tail[-1].end()), match.span("short")
                break


def _in_order(letters: list[str], initials: list[str]) -> bool:
    rest = iter(initials)
    return all(letter in rest for letter in letters)


def is_code(name: str) -> bool:
    """Whether a word is written as only code is: with an inner underscore, a dot, or a capital after a small letter.

    >>> [is_code(name) for name in ("LLMEngine", "run_it", "a.b", "Model", "LLM", "request", "GPUs")]
    [True, True, True, False, False, False, False]
    """
    return is_identifier(name) and (
        "_" in name or "." in name or bool(re.search(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}", name))
    )


def definitions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (term, start, end) of bold terms and of what sentences say that it is something.

    >>> list(definitions("Paged Attention is a way to … with **block tables** in it. **Note**: this is the end."))
    [('Paged Attention', 0, 15), ('block tables', 37, 49)]
    """
    for pattern, group in ((_DEFINED, "term"), (_BOLD, "bold")):
        for match in pattern.finditer(text):
            raw = match[group]
            term = raw.strip(" `:.*_")
            at = match.start(group) + raw.find(term)
            is_label = (
                pattern is _BOLD and " " not in term and not is_distinct(term)
            )  # **Solution**: no term of a field
            if is_term(term) and not is_label:
                yield term, at, at + len(term)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a term or title as they are compared: in lower case, marks aside.

    >>> words_of("🚀 Paged Attention (`v2`)")
    ('paged', 'attention', 'v2')
    """
    return tuple(match[0].lower() for match in _WORD.finditer(text))


def is_term(text: str) -> bool:
    """Whether a phrase can be a term of the field: one to four words, none a function word, one alone not plain.

    >>> [is_term(text) for text in ("Paged Attention", "LoRA", "Note", "What is it", "model", "Helm", "Using it")]
    [True, True, False, False, False, True, False]
    """
    words = words_of(text)
    if not 0 < len(words) <= _MOST_WORDS or not _NO_TERM.isdisjoint(words) or not any(map(str.isalpha, text)):
        return False
    if not re.fullmatch(r"[^\W\d_][\w+# -]*", text):
        return False
    return not words[0].endswith("ing") if len(words) > 1 else len(words[0]) > 2 and not text.islower()


def is_distinct(word: str) -> bool:
    """Whether one word alone tells that a term is meant: no other sense of the language is written so.

    >>> [is_distinct(word) for word in ("LoRA", "GGUF", "fp8", "Helm", "tracing")]
    [True, True, True, False, False]
    """
    return not _PLAIN.fullmatch(word) and not word.endswith(("-", "+"))


def spans_of_words(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """(word in lower case, start, end) of the words between two offsets."""
    return [(match[0].lower(), *match.span()) for match in _WORD.finditer(text, start, end)]
