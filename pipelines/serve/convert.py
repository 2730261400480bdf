"""`python -m pipelines.serve.convert FILE.gguf FOLDER`: a GGUF file as safetensors, which vLLM's CPU build loads.

In a process of its own, since it needs a gigabyte for half a minute.
"""

import sys
from pathlib import Path


def convert(gguf: Path, folder: Path) -> None:
    """Write model and tokenizer of a GGUF file into a folder, in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
