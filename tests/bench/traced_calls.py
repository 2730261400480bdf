"""What share of the calls that really happen the linker finds: a package's own tests under `sys.setprofile`.

    python -m tests.bench.traced_calls pathspec==1.1.1

Static figures (tests.bench.jedi_calls) share the blind spots of static analysis; these do not. An *edge* is a pair of
caller and callee, both functions of the package or its tests. Calls that Python makes by itself (operators, iteration,
callbacks out of C) have no call in the source to be found, so the kinds are told apart.
"""

import argparse
import inspect
import json
import re
import runpy
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

from pipelines.chunking.python import Unparsable
from pipelines.code.facts import Facts, file_facts
from pipelines.code.link import link
from pipelines.corpus.decode import decode
from pipelines.corpus.fetch import fetch
from pipelines.corpus.spec import parse_spec
from pipelines.settings import Settings

_INSIDE = re.compile(r"(\.<locals>)?\.<(listcomp|setcomp|dictcomp|genexpr|lambda)>")


def record(root: Path, out: Path, command: list[str]) -> None:
    """Run a module under a profile function and write the pairs of code objects that called each other."""
    pairs: set[tuple[Any, Any]] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_back is not None:
            pairs.add((frame.f_back.f_code, frame.f_code))

    prefix = f"{root}/"
    sys.argv = command
    sys.setprofile(profile)
    try:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    rows = [
        [[code.co_filename.removeprefix(prefix), code.co_qualname] for code in pair]
        for pair in pairs
        if all(code.co_filename.startswith(prefix) for code in pair)
    ]
    out.write_text(json.dumps(rows))


def _symbol(path: str, name: str) -> str:
    name = _INSIDE.sub("", name)
    return path if name in ("<module>", "") or name.startswith("<") else f"{path}::{name}"


def compare(root: Path, pairs: list[Any]) -> None:
    facts: dict[str, Facts] = {}
    for path in sorted(root.rglob("*.py")):
        try:
            name = path.relative_to(root).as_posix()
            facts[name] = file_facts(name, decode(path.read_bytes(), python=True).text)
        except Unparsable:
            continue
    links = link(facts.values())
    calls: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for site in links.sites:
        if site.relation == "CALLS":
            calls[site.source].add(site.target)
        elif site.relation == "INHERITS_FROM":
            bases[site.source].add(site.target)
    kinds = {facts[path].symbol_id(number): (row[0], facts[path].functions.get(number, {}).get("flags", []))
             for path in facts for number, row in enumerate(facts[path].symbols)}  # fmt: skip
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed: dict[str, list[str]] = defaultdict(list)
    overrides: Counter[str] = Counter()
    edges = {(_symbol(*caller), _symbol(*callee)) for caller, callee in pairs if not _INSIDE.search(callee[1][-12:])}
    for caller, callee in sorted(edges):
        kind, flags = kinds.get(callee, ("", []))
        if kind != "function" or caller not in kinds:
            continue  # modules and class bodies are run, not called
        name = callee.rpartition(".")[2]
        group = (
            "constructors" if name in ("__init__", "__new__", "__post_init__")
            else "properties" if "property" in flags
            else "implicit (operators, iteration, with)" if name.startswith("__") and name.endswith("__")
            else "tests, by their runner" if caller == callee.partition("::")[0] else "plain calls"
        )  # fmt: skip
        total[group] += 1
        hit = callee in calls[caller]
        if group == "constructors":
            owner = callee.rpartition(".")[0]
            hit = hit or any(owner in _above(target, bases) for target in calls[caller])
        found[group] += hit
        overrides[group] += hit or _is_override(callee, calls[caller], bases)
        if not hit:
            missed[group].append(f"{caller} -> {callee}")
    print(f"  {'':40} {'exact':>16} {'or the method it overrides':>28}")
    for group, count in [*sorted(total.items()), ("all", sum(total.values()))]:
        exact, loose = (sum(c.values()) if group == "all" else c[group] for c in (found, overrides))
        print(f"  {group:40} {exact:5}/{count:<5} {exact / count:.3f} {loose:14}/{count:<5} {loose / count:.3f}")
    for group, lines in sorted(missed.items()):
        print(f"  missed {group}:")
        for line in lines[:12]:
            print(f"    {line}")


def _is_override(callee: str, targets: set[str], bases: dict[str, set[str]]) -> bool:
    """Whether the linker named the method of a base that the call reached at run time in a subclass."""
    owner, _, name = callee.rpartition(".")
    return any(f"{above}.{name}" in targets for above in _above(owner, bases))


def _above(symbol: str, bases: dict[str, set[str]]) -> set[str]:
    found, pending = {symbol}, [symbol]
    while pending:
        for base in bases[pending.pop()] - found:
            found.add(base)
            pending.append(base)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]))
    parser.add_argument("package", help="NAME==VERSION with tests in its source archive")
    parser.add_argument("--tests", default="tests")
    parser.add_argument("--record", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        root, out = (Path(part) for part in arguments.record)
        record(root, out, ["pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:warnings", arguments.tests])
        return
    with tempfile.TemporaryDirectory() as folder:
        root = fetch(parse_spec(f"pypi:{arguments.package}"), Settings(home=Path(folder))).root.resolve()
        out = Path(folder) / "pairs.json"
        source = next((place for place in (root / "src", root) if place.is_dir()), root)
        here = Path(__file__).resolve().parent.parent
        subprocess.run(
            [sys.executable, "-m", "tests.bench.traced_calls", arguments.package, "--tests", arguments.tests,
             "--record", root, out],
            cwd=root,
            env={"PYTHONPATH": f"{source}:{root}:{here}", "PATH": "/usr/bin:/bin"},
            check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        print(f"{arguments.package}: run-time edges of its tests that the linker has")
        compare(root, json.loads(out.read_text()))


if __name__ == "__main__":
    main()
