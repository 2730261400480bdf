"""Prompt templates of one's own: files that are read with care, whatever is in them."""

from collections.abc import Collection
from pathlib import Path
from string import Template

from pipelines.errors import CgragError


def read_template(file: Path, remedy: str) -> str:
    """Return the text of a template's file.

    Raises:
        CgragError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CgragError(f"The prompt {file} cannot be read: {error}.", remedy) from error


def check_template(file: Path, prompt: str, known: Collection[str], remedy: str) -> None:
    """Make sure that a template has no placeholder but known ones, and no dollar sign that begins none.

    Raises:
        CgragError: it has; the message names it.
    """
    template = Template(prompt)
    unknown = [name for name in template.get_identifiers() if name not in known]
    if unknown:
        raise CgragError(f"The prompt {file} has the placeholder ${unknown[0]}, which is not known.", remedy)
    if not template.is_valid():
        raise CgragError(f"The prompt {file} has a lone $; a dollar sign is written $$.", remedy)
