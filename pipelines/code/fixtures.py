"""pytest's fixtures: a parameter of a test names the function that gives it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipelines.code.classes import Function
from pipelines.code.modules import Module, upwards

if TYPE_CHECKING:
    from pipelines.code.evaluate import Evaluator


def fixture_of(evaluator: "Evaluator", module: Module, number: int, name: str) -> Function | None:
    """Return the fixture that a parameter of a test or fixture asks for.

    It is looked for in its class, in its file, and in each conftest.py from its folder upwards.
    """
    symbols = module.facts.symbols
    flags = module.facts.functions.get(number, {}).get("flags", ())
    own = symbols[number][1].rpartition(".")[2]
    if not (own.startswith("test") or "fixture" in flags):
        return None
    parent = symbols[number][2]
    if symbols[parent][0] == "class":
        for _, row in evaluator.find(("class", evaluator.class_(module, parent), ()), name):
            found = _fixture(evaluator, module, row)
            if found and found.number != number:
                return found
    for place in (module, *_conftests(evaluator, module.folder)):
        binding = evaluator.modules.binding(place, name)
        found = _fixture(evaluator, *binding) if isinstance(binding, tuple) else None
        if found and (found.module, found.number) != (module, number):
            return found
    return None


def _conftests(evaluator: "Evaluator", folder: str) -> Iterator[Module]:
    for above in upwards(folder):
        found = evaluator.modules.by_path.get(f"{above}/conftest.py" if above else "conftest.py")
        if found is not None:
            yield found


def _fixture(evaluator: "Evaluator", module: Module, row: int) -> Function | None:
    for value in evaluator.values(module, row):
        if value[0] == "function" and "fixture" in value[1].flags:
            return value[1]  # type: ignore[no-any-return]
    return None
