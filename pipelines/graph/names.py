"""Names as a search compares them."""

import re
import unicodedata


def search_key(name: str) -> str:
    """What two spellings of a name have in common: NFKC, case and underscores aside, the last part of a dotted name.

    >>> search_key("Engine.tokenizer_group"), search_key("TokenizerGroup"), search_key("C++"), search_key("_")
    ('tokenizergroup', 'tokenizergroup', 'c++', '_')
    """
    name = _folded(name)
    last = name.rpartition(".")[2] if re.fullmatch(r"[\w.<>]+\w", name) else name
    return last.replace("_", "") or last


def module_name(path: str) -> str:
    """The dotted name of a module's file; a package's is that of its folder.

    >>> module_name("vllm/lora/request.py"), module_name("vllm/lora/__init__.py")
    ('vllm.lora.request', 'vllm.lora')
    """
    return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")


def name_id(name: str) -> str:
    """The id of a name: what differs in Unicode's form, case or outer blanks is one, what differs in a mark is not.

    >>> name_id("C++"), name_id(" c++") == name_id("C++"), name_id("C#") == name_id("C")
    ('name:c++', True, False)
    """
    return "name:" + unicodedata.normalize("NFKC", _folded(name))


def shown_id(id: str) -> str:
    """An entity as a sentence names it, by its id: a symbol's qualified name, a bare name, a path.

    >>> shown_id("vllm/lora/request.py::LoRARequest"), shown_id("name:paged attention"), shown_id("docs/lora.md")
    ('LoRARequest', 'paged attention', 'docs/lora.md')
    """
    return id.rpartition("::")[2].removeprefix("name:")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()
