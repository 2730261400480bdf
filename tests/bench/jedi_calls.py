"""How far the linker and jedi agree, call by call, on a random sample of functions.

Run it as
    python -m tests.bench.jedi_calls --home data --functions 300 --seed 7

A *site* is one call written in a sampled function. jedi's answer is `goto(follow_imports=True)`, and `infer` where that
ends at an assignment. A class and its `__init__` count as the same target. Precision is over the sites where both
answer; recall over those where jedi names a definition of the corpus; sites where jedi knows nothing are listed apart.
"""

import argparse
import ast
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import jedi

from pipelines.chunking.lines import Lines
from tests.bench.corpus_code import CorpusCode, read_code

_DEFINITIONS = ("function", "class", "property")
Position = tuple[int, int]
"""Line and column (in characters) of a name."""


class Oracle:
    """jedi's answers as symbol ids of the corpus."""

    def __init__(self, code: CorpusCode) -> None:
        self.code = code
        self.project = jedi.Project(code.root, sys_path=[str(code.root)], load_unsafe_extensions=False)
        self.environment = jedi.InterpreterEnvironment()
        self.by_line: dict[tuple[str, int, str], str] = {}
        self.lines = {path: Lines(text) for path, text in code.texts.items()}
        for path, text in code.texts.items():
            for name, line in _definitions(ast.parse(text)):
                self.by_line[path, line, name.rpartition(".")[2]] = f"{path}::{name}"
            for symbol in code.facts[path].symbols:
                self.by_line.setdefault((path, symbol[7], symbol[1].rpartition(".")[2]), f"{path}::{symbol[1]}")

    def answer(self, path: str, position: Position, script: jedi.Script) -> tuple[set[str], str]:
        """Return the definitions of the corpus, and corpus, external, statement or silent."""
        try:
            names = script.goto(*position, follow_imports=True)
            if not any(name.type in _DEFINITIONS or name.type == "module" for name in names):
                lambdas = self._ids(names)
                if any(self.kind(symbol) == "function" for symbol in lambdas):
                    return lambdas, "corpus"
                names = script.infer(*position)
                if not any(name.type in _DEFINITIONS for name in names):
                    return set(), "statement" if names else "silent"
        except Exception as error:  # jedi's own failures are its own affair
            return set(), f"error {type(error).__name__}"
        found = self._ids([name for name in names if name.type in (*_DEFINITIONS, "module")])
        return found, "corpus" if found else "external"

    def _ids(self, names: list[Any]) -> set[str]:
        found = set()
        for name in names:
            path = self._path(name)
            if path and name.type == "module":
                found.add(path)
            elif path and (symbol := self.by_line.get((path, name.line, name.name))):
                found.add(symbol.removesuffix(".__init__"))
        return found

    def _path(self, name: Any) -> str | None:
        place = name.module_path
        if place is None or not place.is_relative_to(self.code.root):
            return None
        path = place.relative_to(self.code.root).as_posix()
        return path if path in self.code.facts else None

    def kind(self, symbol: str) -> str:
        path, _, name = symbol.partition("::")
        return next((row[0] for row in self.code.facts[path].symbols if row[1] == name), "")

    def script(self, path: str) -> jedi.Script:
        text = self.code.texts[path]
        return jedi.Script(text, path=self.code.root / path, project=self.project, environment=self.environment)


def _definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, prefix = pending.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + child.name
                yield name, child.lineno
                inner = f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>."
                pending.append((child, inner))
            else:
                pending.append((child, prefix))


def functions(code: CorpusCode) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions with a call in them, in order of path and line."""
    found = []
    for path, text in sorted(code.texts.items()):
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        found += [
            (path, node) for node in sorted(nodes, key=lambda node: node.lineno) if any(True for _ in calls(node))
        ]
    return found


def calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """The calls in a function's own body, not in definitions inside it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


def name_span(lines: Lines, node: ast.expr) -> tuple[int, int]:
    """Offsets of the name that is called: of `a.b` those of `b`."""
    end = lines.offset(node.end_lineno or 1, node.end_col_offset or 0)
    if isinstance(node, ast.Attribute):
        return end - len(node.attr), end
    return lines.offset(node.lineno, node.col_offset), end


class Score:
    """Counts of agreement, with the sites that disagree."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.by_tier: dict[str, Counter[str]] = defaultdict(Counter)
        self.reached = self.wanted = self.pairs_reached = self.pairs_wanted = 0
        self.disagree: list[str] = []
        self.missed: list[str] = []
        self.silent: list[str] = []
        self.jedi_wrong: list[str] = []

    def add(self, where: str, ours: set[str], tier: str, jedis: set[str], kind: str) -> None:
        if jedis:
            self.wanted += 1
            self.reached += bool(ours & jedis)
            self.pairs_wanted += len(jedis)
            self.pairs_reached += len(ours & jedis)
            if not ours:
                self.missed.append(f"{where}  jedi: {', '.join(sorted(jedis))}")
        if not ours:
            return
        if kind in ("corpus", "external"):
            self.by_tier[tier]["agree" if ours & jedis else "disagree"] += 1
            if not ours & jedis:
                self.disagree.append(f"{where}  ours ({tier}): {sorted(ours)}  jedi: {sorted(jedis) or kind}")
        else:
            self.by_tier[tier]["jedi silent"] += 1
            self.silent.append(f"{where}  ours ({tier}): {sorted(ours)}")

    def report(self, details: int) -> None:
        agree = sum(count["agree"] for count in self.by_tier.values())
        both = agree + sum(count["disagree"] for count in self.by_tier.values())
        print(f"\n{self.title}")
        print(f"  precision {agree}/{both} = {agree / max(both, 1):.4f}   (sites where both answer)")
        print(f"  recall    {self.reached}/{self.wanted} = {self.reached / max(self.wanted, 1):.4f}   (jedi's sites)")
        print(f"  targets   {self.pairs_reached}/{self.pairs_wanted} of all definitions that jedi names")
        for tier, count in sorted(self.by_tier.items()):
            print(f"    {tier:12}{dict(sorted(count.items()))}")
        lists = {"disagree": self.disagree, "missed": self.missed, "jedi silent": self.silent}
        for name, lines in {**lists, "left out, jedi is wrong": self.jedi_wrong}.items():
            print(f"  {name}: {len(lines)}")
            for line in lines[:details]:
                print(f"    {line}")


def compare_calls(code: CorpusCode, oracle: Oracle, count: int, seed: int) -> Score:
    sites: dict[tuple[str, int, int], dict[str, str]] = defaultdict(dict)
    for site in code.links.sites:
        if site.relation == "CALLS" and site.tier not in ("property", "fixture"):
            sites[site.path, site.start, site.end][site.target.removesuffix(".__init__")] = site.tier
    chosen = random.Random(seed).sample(functions(code), count)
    score = Score(f"CALLS in {count} functions, seed {seed}")
    for path, function in chosen:
        lines, script = oracle.lines[path], oracle.script(path)
        for call in calls(function):
            start, end = name_span(lines, call.func)
            ours = sites.get((path, start, end), {})
            line = lines.number(start)
            jedis, kind = oracle.answer(path, (line, start - lines.start(line)), script)
            where = f"{path}:{line} {ast.unparse(call.func)[-60:]}"
            score.add(where, set(ours), next(iter(ours.values()), ""), jedis, kind)
    return score


def compare_names(code: CorpusCode, oracle: Oracle, relation: str, count: int, seed: int) -> Score:
    """The same for the bases of classes and the names of imports, `count` random places each."""
    ours: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for site in code.links.sites:
        if site.relation == relation:
            ours[site.path, site.start, site.end].add(site.target)
    kinds = {"INHERITS_FROM": "base", "IMPORTS": "import"}
    places = [
        (path, line, start, end)
        for path, facts in sorted(code.facts.items())
        for _, kind, _, positions in facts.references
        if kind == kinds[relation]
        for line, start, end in zip(positions[::3], positions[1::3], positions[2::3], strict=True)
    ]
    score = Score(f"{relation} at {count} places, seed {seed}")
    for path, line, start, end in random.Random(seed).sample(places, count):
        lines = oracle.lines[path]
        last = end - 1 if lines.text[start:end].strip(".") else start
        line = lines.number(last)
        jedis, kind = oracle.answer(path, (line, last - lines.start(line)), oracle.script(path))
        where = f"{path}:{line} {lines.text[start:end]}"
        if relation == "IMPORTS" and _beside(code, path, lines.text[start:end], jedis):
            score.jedi_wrong.append(
                f"{where}  jedi: {', '.join(sorted(jedis))}  (a file of a package hides no library)"
            )
            continue
        score.add(where, ours.get((path, start, end), set()), relation.lower(), jedis, kind)
    return score


def _beside(code: CorpusCode, path: str, written: str, jedis: set[str]) -> bool:
    """Whether jedi took an absolute import in a package for a file of the package, as Python 2 did.

    jedi puts the folders above a file on its path as if the file were a script; those of a package are not.
    """
    top = written.partition(".")[0]
    above = PurePosixPath(path).parents
    packages = [folder for folder in above if (folder / "__init__.py").as_posix() in code.facts]
    wrong = {(folder / name).as_posix() for folder in packages for name in (f"{top}.py", f"{top}/__init__.py")}
    return bool(top) and bool(jedis) and jedis <= wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--functions", type=int, default=300)
    parser.add_argument("--names", type=int, default=300, help="bases and imports compared, each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--details", type=int, default=100, help="how many sites of each list are printed")
    arguments = parser.parse_args()
    code = read_code(arguments.home)
    oracle = Oracle(code)
    began = time.monotonic()
    compare_calls(code, oracle, arguments.functions, arguments.seed).report(arguments.details)
    for relation in ("INHERITS_FROM", "IMPORTS"):
        if arguments.names:
            compare_names(code, oracle, relation, arguments.names, arguments.seed).report(arguments.details)
    print(f"\njedi {jedi.__version__}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
