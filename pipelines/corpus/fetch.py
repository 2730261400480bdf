"""A corpus spec becomes a folder on this machine; archives and clones are cached under the home."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.git import export_commit, tracked_files
from pipelines.corpus.package_index import download
from pipelines.corpus.spec import CorpusSpec
from pipelines.corpus.unpack import unpack
from pipelines.errors import CgragError
from pipelines.layout import Layout, file_name
from pipelines.progress import Progress, silent
from pipelines.settings import Settings


@dataclass(frozen=True)
class Source:
    """A folder to walk."""

    root: Path
    name: str
    ignore_rules: bool = True
    """Whether .gitignore files decide. Not in an exported commit or a source archive: there git, or the authors, have
    decided (vLLM ships, and its repository tracks, files that its own .gitignore would leave out)."""
    tracked: frozenset[str] = frozenset()
    """Paths that git tracks, which no ignore rule leaves out."""
    note: str = ""
    """What the user should know, such as that the network was not reached."""


def fetch(spec: CorpusSpec, settings: Settings, progress: Progress = silent) -> Source:
    """Return the folder of a corpus, downloading or cloning it unless it is cached.

    Progress counts bytes of a download, or objects of a clone.

    Raises:
        CgragError: the folder, version or ref does not exist, nothing can be reached and nothing is cached, or the
            archive is broken, too large, or has a path that leaves it.
    """
    if spec.kind == "folder":
        return _folder(Path(spec.location), spec.name)
    if spec.kind == "git":
        root, note = export_commit(spec, Layout(settings.home).sources, progress)
        return Source(root, spec.name, ignore_rules=False, note=note)
    return Source(_sdist(spec, settings, progress), spec.name, ignore_rules=False)


def _folder(root: Path, name: str) -> Source:
    remedy = "The store is as it was. Give a folder that can be read:  cgrag run --corpus FOLDER"
    if not root.exists():
        raise CgragError(f"The folder {root} does not exist.", remedy)
    if not root.is_dir():
        raise CgragError(f"{root} is not a folder.", remedy)
    try:
        next(root.iterdir(), None)
    except OSError as error:
        raise CgragError(f"The folder {root} cannot be read: {error.strerror}.", remedy) from error
    return Source(root, name, tracked=tracked_files(root))


def _sdist(spec: CorpusSpec, settings: Settings, progress: Progress) -> Path:
    cached = Layout(settings.home).sources / file_name(spec.text)
    if not cached.exists():
        with staging(cached) as folder:
            archive = download("source archive", spec.location, spec.version, settings, folder, progress)
            unpack(archive, folder / "tree", settings.max_source_bytes)
            archive.unlink()
    inside = sorted((cached / "tree").iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else cached / "tree"


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` when the block ends well, so that no half of one is left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=target.parent) as temporary:
        folder = Path(temporary) / "done"
        folder.mkdir()
        yield folder
        if not target.exists():
            shutil.move(folder, target)
