"""What a user may name as a corpus, and the one corpus that a home holds."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.tables import read_json, write_json

_FORMS = "A corpus is a folder, git+URL@REF, or pypi:NAME==VERSION."


@dataclass(frozen=True)
class CorpusSpec:
    """A parsed corpus spec; `text` is its normal form, by which two specs are compared."""

    kind: Literal["folder", "git", "pypi"]
    location: str
    """An absolute folder, a URL or path of a git repository, or a project's name."""
    version: str
    """A git ref, a version of the project, or "" for a folder."""

    @property
    def text(self) -> str:
        if self.kind == "folder":
            return self.location
        return f"git+{self.location}@{self.version}" if self.kind == "git" else f"pypi:{self.location}=={self.version}"

    @property
    def name(self) -> str:
        """A short name for people: `vllm-0.10.1`."""
        if self.kind == "pypi":
            return f"{self.location}-{self.version}"
        base = re.split(r"[/:]", self.location.rstrip("/"))[-1].removesuffix(".git") or "corpus"
        return f"{base}@{self.version}" if self.kind == "git" else base


def parse_spec(text: str) -> CorpusSpec:
    """Return the spec that `text` names; nothing is fetched or looked up.

    >>> parse_spec("pypi:VLLM==0.10.1").name
    'vllm-0.10.1'
    >>> parse_spec("git+https://example.org/a/b.git@v1.2").version
    'v1.2'
    >>> parse_spec("git+ssh://git@example.org/a/b").location
    'ssh://git@example.org/a/b'

    Raises:
        CgragError: it has none of the three forms, or holds a password.
    """
    if text.startswith("pypi:"):
        match = re.fullmatch(
            r"pypi:\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([A-Za-z0-9.!+_-]+)\s*", text
        )
        if not match:
            raise CgragError(f"{text!r} is not a project with an exact version.", "Write it as pypi:NAME==VERSION.")
        return CorpusSpec("pypi", re.sub(r"[-_.]+", "-", match[1]).lower(), match[2])
    if text.startswith("git+"):
        return _parse_git(text)
    if not text.strip() or "\0" in text:
        raise CgragError(f"{text!r} names no corpus.", _FORMS)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z]+:[A-Za-z0-9._-]+==", text):
        raise CgragError(f"{text!r} is not a corpus that cgrag can fetch.", _FORMS)
    return CorpusSpec("folder", str(Path(text).expanduser().absolute().resolve()), "")


def _parse_git(text: str) -> CorpusSpec:
    url = text.removeprefix("git+")
    parts = urlsplit(url) if "://" in url else None
    if parts and parts.password:
        raise CgragError(
            "The git URL holds a password, which would be stored.", "Leave it to git: git config credential.helper"
        )
    head = url[: len(url) - len(parts.path)] if parts else ""
    tail = url[len(head) :]
    scp_like = re.match(r"[^/@]+@[^/:]+:", tail) if not parts else None
    host = scp_like[0] if scp_like else ""
    path, _, ref = tail[len(host) :].rpartition("@") if "@" in tail[len(host) :] else (tail[len(host) :], "", "HEAD")
    if not path or not ref or ref.startswith("-") or url.startswith("-"):
        raise CgragError(
            f"{text!r} names no git repository and ref.", "Write it as git+URL@REF, e.g. git+/srv/repo@main."
        )
    if not parts and not host:
        path = str(Path(path).expanduser().absolute().resolve())
    return CorpusSpec("git", f"{head}{host}{path}", ref)


def recorded_spec(layout: Layout) -> CorpusSpec | None:
    """Return the corpus that this home holds, or None before its first run."""
    record = read_json(layout.corpus_record, f"Remove {layout.corpus_record} and run again:  cgrag run --corpus SPEC")
    return CorpusSpec(**record) if record else None


def check_home(layout: Layout, spec: CorpusSpec) -> None:
    """Make sure that this home holds `spec` or nothing.

    Raises:
        CgragError: it holds another corpus; the message has the command for a home of its own.
    """
    held = recorded_spec(layout)
    if held and held != spec:
        raise CgragError(
            f"{layout.home} holds the corpus {held.text}; one home holds one corpus.",
            f"Give the other a home of its own:  CGRAG_HOME={layout.home}-{re.sub('[^A-Za-z0-9.-]+', '-', spec.name)}"
            f" cgrag run --corpus {spec.text}",
        )


def claim_home(layout: Layout, spec: CorpusSpec) -> None:
    """Record `spec` as this home's corpus, unless it is already; raises as `check_home` does."""
    check_home(layout, spec)
    if recorded_spec(layout) is None:
        write_json(layout.corpus_record, {"kind": spec.kind, "location": spec.location, "version": spec.version})


def held_spec(layout: Layout) -> CorpusSpec:
    """Return the corpus of this home: the recorded one, or the default before the first run."""
    from pipelines.settings import DEFAULT_CORPUS

    return recorded_spec(layout) or parse_spec(DEFAULT_CORPUS)
