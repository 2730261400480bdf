"""A small code corpus with every shape that structural questions ask about, built once."""

from collections.abc import Iterator

import pytest

from pipelines.lexical.index import load_index
from pipelines.retrieve.graph_search import GraphSearch
from tests.support import Home, write_tree

FILES = {
    "shop/__init__.py": "",
    "shop/base.py": '''"""Stock in general."""


class Keeper:
    """Keeps things."""

    def store(self, thing):
        return self.check(thing)

    def check(self, thing):
        return weigh(thing)

    def count(self):
        return 0


class Labelled:
    def label(self):
        return "label"

    def count(self):
        return 1


def weigh(thing):
    """Return the weight of a parcel in grams, packaging included."""
    return len(thing)
''',
    "shop/till.py": """from shop.base import Keeper, Labelled, weigh


class Till(Keeper, Labelled):
    def __init__(self, drawer):
        self.drawer = make_drawer(drawer)

    def check(self, thing):
        return bool(thing)


class FastTill(Till):
    def store(self, thing):
        return super().store(thing)


def make_drawer(name):
    def numbered(number):
        return weigh(name) + number

    return numbered(1)


def open_shop():
    till = Till("east")
    till.store("coin")
    return till


def open_mall():
    return [open_shop(), open_shop()]


def register():
    return 1


def settle():
    return register()
""",
    "shop/many.py": "\n\n".join(f"class Box{n}:\n    def unpack(self):\n        return {n}" for n in range(5)) + "\n",
    "shop/loop.py": "def tick():\n    return 1\n\n\n"
    + "\n\n".join(f"def use_{n}():\n    return tick()" for n in range(60))
    + "\n",
    "tests/test_till.py": """from shop.till import open_shop, settle


def helper_of_tests():
    return settle()


def test_settling():
    assert settle() == 1


def test_opening():
    assert open_shop()
""",
    "docs/shop.md": "# Shop\\n\\nHow a shop is opened, and what a till does with coins.\\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Home:
    """The corpus with chunks of at most 200 characters, its index and its graph; tests must not change it."""
    folder = tmp_path_factory.mktemp("shop")
    home = Home(folder / "home", chunking={"cap": 200, "section": 100})
    home.build(write_tree(folder / "shop-1.0", FILES))
    return home


@pytest.fixture(scope="module")
def asked(shop: Home) -> Iterator[GraphSearch]:
    yield GraphSearch(load_index(shop.settings), shop.settings, None)
