"""Files of a package index, fetched as they are: nothing is built or installed."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipelines.errors import CgragError, Transient
from pipelines.progress import Progress, silent
from pipelines.settings import Settings

if TYPE_CHECKING:
    from unearth import PackageFinder

Kind = Literal["source archive", "wheel"]


def download(
    kind: Kind, name: str, version: str, settings: Settings, folder: Path, progress: Progress = silent
) -> Path:
    """Return the file of a release, downloaded into `folder`, its hash checked; progress counts bytes.

    Raises:
        CgragError: there is none, the index cannot be reached, or the file arrives damaged.
    """
    from unearth import PackageFinder
    from unearth.errors import HashMismatchError, UnpackError

    spec = f"pypi:{name}=={version}"
    offline = f"{spec} is not cached here. Connect and run again, or set CGRAG_INDEX_URL to an index you can reach."
    finder = PackageFinder(
        index_urls=[settings.index_url],
        no_binary=[name] if kind == "source archive" else [],
        only_binary=[name] if kind == "wheel" else [],
    )
    try:
        found = finder.find_best_match(f"{name}=={version}", allow_prereleases=True)
        if found.best is None:
            raise CgragError(*_not_found(kind, name, version, finder, offline))
        link = found.best.link
        return finder.download(
            link,
            folder,
            {name: [value] if isinstance(value, str) else value for name, value in (link.hashes or {}).items()},
            lambda _link, done, total: progress(done, total),
        )
    except HashMismatchError as error:
        raise CgragError(f"{spec} arrived damaged: its hash is not the index's.", "Run again:  cgrag run") from error
    except CgragError:
        raise
    except Exception as error:  # the client library's own classes of network errors are not public
        if not isinstance(error, UnpackError | OSError) and not type(error).__module__.startswith("http"):
            raise
        reason = re.sub(r"//[^/@\s]+@", "//", str(error))
        raise Transient(f"The package index cannot be reached: {reason}", offline) from None


def _not_found(kind: Kind, name: str, version: str, finder: "PackageFinder", offline: str) -> tuple[str, str]:
    every = list(finder.find_all_packages(name))
    if not every:
        return f"The package index shows no {kind} of {name!r}.", f"Check the name. {offline}"
    newest = ", ".join(dict.fromkeys(str(package.version) for package in every[:5]))
    remedy = f"Versions that have one: {newest}."
    if kind == "source archive":
        remedy += f"  cgrag run --corpus pypi:{name}=={every[0].version}"
    return f"The package index has no {kind} of {name} {version}.", remedy
