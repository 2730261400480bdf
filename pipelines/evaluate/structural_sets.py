"""Questions about the structure of a corpus's code, with jedi's answers: synthetic, and they say so in ids and note.

Each kind has several wordings, and a truth that is known in full: callers, subclasses and tests are asked for only
where jedi knows every place that could be one. A source is the beginning of a definition.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.evaluate.jedi_truth import Code, Definition, Oracle, Site
from pipelines.progress import Progress, silent

NOTE = "Synthetic: names and answers are jedi's, the wordings are a few for each kind; not asked by people."
PER_KIND = 15
SOURCE = 200
"""Characters of a definition that are its source."""
_MOST_SOURCES = 8
_MOST_SITES = 12
"""Of a name written in more places the callers would take jedi too long."""
WORDINGS: dict[str, list[str]] = {
    "callers": [
        "`{x}` is about to be renamed: which functions call it today?",
        "Every function with a call to `{x}` in its body, please.",
        "Who are the callers of `{x}`?",
        "What code invokes `{x}`?",
        "In which functions does a call to `{x}` occur?",
        "If I set a breakpoint in `{x}`, which functions could have called it?",
    ],
    "callees": [
        "What does the body of `{x}` call?",
        "Which of the project's functions and classes does `{x}` call on its way?",
        "To understand `{x}`, which callees must I read?",
        "What is called from within `{x}`?",
        "`{x}` calls which other functions?",
        "List whatever gets invoked by `{x}`.",
    ],
    "bases": [
        "Which class or classes does `{x}` derive from?",
        "Show the parents of the class `{x}`.",
        "What comes right above `{x}` in the class hierarchy?",
        "`{x}` is built on top of which base class?",
        "Of which class is `{x}` a specialisation?",
        "What does `{x}` name as its bases?",
    ],
    "subs": [
        "Which classes directly derive from `{x}`?",
        "Who extends `{x}`?",
        "Show all direct children of the class `{x}`.",
        "What concrete implementations of `{x}` are there?",
        "For which classes is `{x}` the parent?",
        "Which classes name `{x}` as their base?",
    ],
    "inherited": [
        "Which methods does `{x}` have only by inheritance?",
        "What can be called on `{x}` that it doesn't define itself but gets from its ancestors?",
        "Where does `{x}` get the methods that it inherits?",
        "List the methods that reach `{x}` from its base classes unchanged.",
        "Which inherited methods of `{x}` are not overridden by it?",
        "What behaviour does `{x}` take over from its parents?",
    ],
    "base_callees": [
        "What would `super().{m}` run if called in `{x}`: which functions does the parent's `{m}` call?",
        "Which functions are called by the `{m}` that the parent of `{x}` defines?",
        "`{x}` has a base class with a method `{m}`; what does that method call?",
        "What does the base class version of `{m}` invoke, seen from `{x}`?",
        "In the parent of `{x}`, which callees does `{m}` have?",
        "Look at `{m}` one level above `{x}`: what gets called there?",
    ],
    "tests2": [
        "Which tests would run `{x}` through some other function?",
        "What tests get to `{x}` by way of a function that calls it?",
        "If `{x}` broke, which tests would notice it indirectly?",
        "Show the tests that cover `{x}` at one remove.",
        "Which test cases call something that in turn calls `{x}`?",
        "Through an intermediate function, which tests end in `{x}`?",
    ],
}
Asked = tuple[dict[str, str], list[Definition]]
"""The names in a wording, and the answer."""


def structural_questions(
    corpus: str,
    root: Path,
    texts: Mapping[str, str],
    *,
    seed: int = 0,
    per_kind: int = PER_KIND,
    wordings: Mapping[str, list[str]] = WORDINGS,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return a question file of at most `per_kind` questions of each kind, the same for the same seed and jedi.

    Args:
        root: the folder of the corpus.
        texts: the decoded text of its Python files, by path.

    Raises:
        CgragError: jedi is not installed.
    """
    code = Code(texts)
    truth = _Truth(code, Oracle(root, code))
    rows: list[dict[str, Any]] = []
    for number, (kind, ways) in enumerate(wordings.items()):
        progress(number * per_kind, len(wordings) * per_kind)
        for at, (names, answer) in enumerate(_first(truth, kind, random.Random(f"{seed} {kind}"), per_kind)):
            rows.append(
                {
                    "question_id": f"structural-{seed}-{kind}-{at:03}",
                    "question": ways[at % len(ways)].format(**names),
                    "split": kind,
                    "sources": [_source(definition) for definition in answer],
                }
            )
            progress(number * per_kind + at + 1, len(wordings) * per_kind)
    progress(len(wordings) * per_kind, len(wordings) * per_kind)
    return {"note": f"{NOTE} Corpus: {corpus}.", "rag_questions": rows}


def _first(truth: "_Truth", kind: str, draws: random.Random, most: int) -> Iterator[Asked]:
    """Yield the first `most` questions of a kind, over names in random order."""
    ask: Callable[[Definition, random.Random], Asked | None] = getattr(truth, kind)
    candidates = truth.functions if kind in ("callers", "callees", "tests2") else truth.classes
    found = 0
    for candidate in draws.sample(candidates, len(candidates)):
        if found == most:
            return
        asked = ask(candidate, draws)
        if asked and 0 < len(asked[1]) <= _MOST_SOURCES:
            found += 1
            yield asked


class _Truth:
    """A method for each kind: what is asked about a definition, and the answer; None where it is not known in full."""

    def __init__(self, code: Code, oracle: Oracle) -> None:
        self._code = code
        self._oracle = oracle
        unique = [found[0] for _, found in sorted(code.by_name.items()) if len(found) == 1]
        self.classes = [found for found in unique if found.kind == "class"]
        self.functions = [d for d in unique if d.kind == "function" and not d.last.startswith("__")]

    def callers(self, function: Definition, draws: random.Random) -> Asked | None:
        return self._of(function, self._sources(self._code.callers[function.last], function))

    def callees(self, function: Definition, draws: random.Random) -> Asked | None:
        called = self._oracle.targets(self._code.calls[function][: 4 * _MOST_SITES])
        return self._of(function, [target for target in called if target != function])

    def bases(self, owner: Definition, draws: random.Random) -> Asked | None:
        return self._of(owner, self._above(owner))

    def subs(self, owner: Definition, draws: random.Random) -> Asked | None:
        return self._of(owner, self._sources(self._code.heirs[owner.last], owner))

    def inherited(self, owner: Definition, draws: random.Random) -> Asked | None:
        """The nearest method of each name, of all bases, that the class does not define."""
        methods: dict[str, Definition] = {}
        level, seen = [owner], {owner}
        while level:
            level = [base for below in level for base in self._above(below) if base not in seen]
            seen.update(level)
            for base in level:
                for name, method in self._code.members[base].items():
                    if method.kind == "function" and name not in self._code.members[owner]:
                        methods.setdefault(name, method)
        return self._of(owner, list(methods.values()))

    def base_callees(self, owner: Definition, draws: random.Random) -> Asked | None:
        methods = {
            name: method
            for base in reversed(self._above(owner))
            for name, method in self._code.members[base].items()
            if method.kind == "function"
        }
        for name in draws.sample(sorted(methods), len(methods)):
            if asked := self.callees(methods[name], draws):
                return {"x": owner.name, "m": name}, asked[1]
        return None

    def tests2(self, function: Definition, draws: random.Random) -> Asked | None:
        """The tests that call a caller of the function."""
        if _is_test(function):
            return None
        callers = self._sources(self._code.callers[function.last], function)
        if not callers or any(caller.last.startswith("__") for caller in callers):
            return None
        found: list[Definition] = []
        for caller in callers:
            sites = [s for s in self._code.callers[caller.last] if s.inside and _is_test(s.inside)]
            tests = self._sources(sites, caller)
            if tests is None:
                return None
            found += tests
        return self._of(function, list(dict.fromkeys(found)))

    def _sources(self, sites: list[Site], target: Definition) -> list[Definition] | None:
        return self._oracle.sources(sites, target) if len(sites) <= _MOST_SITES else None

    def _above(self, owner: Definition) -> list[Definition]:
        return [base for base in self._oracle.targets(self._code.bases[owner]) if base.kind == "class"]

    def _of(self, asked: Definition, answer: list[Definition] | None) -> Asked | None:
        return ({"x": asked.name}, answer) if answer else None


def _is_test(definition: Definition) -> bool:
    return definition.kind == "function" and definition.last.startswith("test")


def _source(definition: Definition) -> dict[str, Any]:
    start = definition.start
    return {
        "file_path": definition.path,
        "first_character_index": start,
        "last_character_index": min(definition.end, start + SOURCE),
    }
