"""Unpacking an archive that may be hostile."""

import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from pipelines.errors import CgragError

_REMEDY = "Nothing of it was kept. Get a sound archive, or unpack it yourself and give the folder."


def unpack(archive: Path, target: Path, max_bytes: int) -> None:
    """Unpack a tar (any compression) or zip into the new folder `target`.

    Raises:
        CgragError: it is neither, is damaged, unpacks to more than `max_bytes`, or has a member that would be written
            or would point outside `target`.
    """
    target.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, target, max_bytes)
        else:
            _unpack_tar(archive, target, max_bytes)
    except tarfile.FilterError as error:
        raise CgragError(f"{archive.name} has a member that leaves the archive's folder: {error}", _REMEDY) from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise CgragError(f"{archive.name} is not an archive that can be unpacked: {error}", _REMEDY) from error


def _refuse_larger(archive: Path, total: int, max_bytes: int) -> None:
    if total > max_bytes:
        raise CgragError(
            f"{archive.name} unpacks to more than {max_bytes:,} bytes.", "Raise CGRAG_MAX_SOURCE_BYTES if you trust it."
        )


def _unpack_tar(archive: Path, target: Path, max_bytes: int) -> None:
    total = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            total += member.size
            _refuse_larger(archive, total, max_bytes)
            tar.extract(member, target, filter="data")


def _unpack_zip(archive: Path, target: Path, max_bytes: int) -> None:
    with zipfile.ZipFile(archive) as bundle:
        _refuse_larger(archive, sum(item.file_size for item in bundle.infolist()), max_bytes)
        for item in bundle.infolist():
            path = PurePosixPath(item.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                raise CgragError(
                    f"{archive.name} has a member that leaves the archive's folder: {item.filename!r}", _REMEDY
                )
            if not stat.S_ISLNK(item.external_attr >> 16):
                bundle.extract(item, target)
