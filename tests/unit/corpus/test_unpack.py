"""Archives, sound and hostile."""

import io
import tarfile
import zipfile

import pytest

from pipelines.corpus.unpack import unpack
from pipelines.errors import CgragError

LARGE = 1_000_000


def tar_of(path, *members, mode="w:gz"):
    """Write a tar whose members are (name, bytes) or ready TarInfos."""
    with tarfile.open(path, mode) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members:
            bundle.writestr(name, data)
    return path


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def files_below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_of_any_compression_is_unpacked(tmp_path, mode):
    archive = tar_of(tmp_path / "a", ("x/a.py", b"a"), ("x/b/c.md", b"c"), mode=mode)
    unpack(archive, tmp_path / "out", LARGE)
    assert files_below(tmp_path / "out") == {"x/a.py": b"a", "x/b/c.md": b"c"}


def test_a_zip_is_unpacked(tmp_path):
    unpack(zip_of(tmp_path / "a.zip", ("x/a.py", "a"), ("x/b/c.md", "c")), tmp_path / "out", LARGE)
    assert files_below(tmp_path / "out") == {"x/a.py": b"a", "x/b/c.md": b"c"}


@pytest.mark.parametrize(
    "member",
    [
        ("../evil", b"x"),
        ("a/../../evil", b"x"),
        link("evil", "/etc"),
        link("evil", "../.."),
        link("evil", "/etc/hostname", tarfile.LNKTYPE),
        link("a/evil", "../../x"),
    ],
    ids=["above", "above by a detour", "link to /", "link above", "hard link", "link above by a detour"],
)
def test_a_tar_with_a_member_that_leaves_it_is_refused(tmp_path, member):
    with pytest.raises(CgragError, match="leaves the archive's folder"):
        unpack(tar_of(tmp_path / "a.tar.gz", ("ok.py", b"x"), member), tmp_path / "in" / "out", LARGE)
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "in" / "evil").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "..\\evil", "C:/evil", "C:\\evil"])
def test_a_zip_with_a_member_that_leaves_it_is_refused(tmp_path, name):
    with pytest.raises(CgragError, match="leaves the archive's folder"):
        unpack(zip_of(tmp_path / "a.zip", ("ok.py", "x"), (name, "x")), tmp_path / "in" / "out", LARGE)
    assert not any(path.name == "evil" for path in tmp_path.rglob("*"))


def test_an_absolute_name_in_a_tar_is_unpacked_inside(tmp_path):
    unpack(tar_of(tmp_path / "a.tar", ("/abs/a.py", b"a")), tmp_path / "out", LARGE)
    assert files_below(tmp_path / "out") == {"abs/a.py": b"a"}


def test_a_link_in_a_tar_through_which_a_member_would_be_written_is_refused(tmp_path):
    (tmp_path / "victim").mkdir()
    archive = tar_of(tmp_path / "a.tar", link("door", str(tmp_path / "victim")), ("door/evil", b"x"))
    with pytest.raises(CgragError, match="leaves the archive's folder"):
        unpack(archive, tmp_path / "out", LARGE)
    assert list((tmp_path / "victim").iterdir()) == []


def test_links_in_a_zip_become_no_file(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    unpack(zip_of(tmp_path / "a.zip", (info, "/etc/passwd"), ("ok.py", "x")), tmp_path / "out", LARGE)
    assert files_below(tmp_path / "out") == {"ok.py": b"x"}


def test_devices_in_a_tar_are_refused(tmp_path):
    info = tarfile.TarInfo("dev")
    info.type = tarfile.CHRTYPE
    with pytest.raises(CgragError):
        unpack(tar_of(tmp_path / "a.tar", info), tmp_path / "out", LARGE)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_truncated_tar_is_refused(tmp_path, mode):
    data = b"".join(f"{number * 7919 % 104729}".encode() for number in range(20_000))
    whole = tar_of(tmp_path / "whole", ("a.py", data), ("b.py", data), mode=mode).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CgragError, match="half is not an archive that can be unpacked"):
        unpack(tmp_path / "half", tmp_path / "out", LARGE)


def test_a_zip_with_a_damaged_member_is_refused(tmp_path):
    data = bytearray(zip_of(tmp_path / "a.zip", ("a.py", "x" * 5000)).read_bytes())
    data[40:50] = b"\xff" * 10
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(CgragError, match=r"b\.zip is not an archive"):
        unpack(tmp_path / "b.zip", tmp_path / "out", LARGE)


@pytest.mark.parametrize("data", [b"", b"plain words", b"\x1f\x8b\x08 no gzip", b"PK\x03\x04 no zip"])
def test_what_is_no_archive_is_refused(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CgragError, match="x is not an archive"):
        unpack(tmp_path / "x", tmp_path / "out", LARGE)


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_written(tmp_path, pack):
    archive = pack(tmp_path / "bomb", ("small.py", b"x" * 10), ("zeros", b"\0" * 10_000_000))
    with pytest.raises(CgragError, match="unpacks to more than 1,000,000 bytes") as refused:
        unpack(archive, tmp_path / "out", LARGE)
    assert "CGRAG_MAX_SOURCE_BYTES" in refused.value.remedy
    assert "zeros" not in files_below(tmp_path / "out")
