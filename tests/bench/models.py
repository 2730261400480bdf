"""`make bench-extract`: the local vLLM against Outlines + transformers, one chunk at a time, in one run.

The same model, the same 32 chunks of the user's own home (half docs, half code), the same prompts, the same grammars.
Beside it the way that is written in every tutorial: a Pydantic model given to Outlines, names free, 512 tokens at most;
on four of the chunks, for it is slow. The home is left as it is; the local server is stopped in between.
"""

import asyncio
import random
import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from pipelines.corpus.scan import load_plan
from pipelines.extract.answer import read_answer
from pipelines.extract.client import Reply, client_of
from pipelines.extract.recipe import Recipe, Request, recipe_of
from pipelines.layout import Layout
from pipelines.serve.lease import lease, stop
from pipelines.serve.models import model_files
from pipelines.settings import Settings, load_settings
from pipelines.tables import CHUNKS, read_table

CHUNKS_ASKED, CHUNKS_FREE, FREE_TOKENS = 32, 4, 512


class FreeEntity(BaseModel):
    name: str
    type: Literal["Function", "Class", "Module", "Variable", "Concept", "Entity"]


class FreeRelation(BaseModel):
    source: str
    relation: Literal["CALLS", "IMPORTS", "INHERITS_FROM", "DEFINED_IN", "REFERENCES", "RELATES_TO"]
    target: str


class FreeAnswer(BaseModel):
    entities: list[FreeEntity]
    relations: list[FreeRelation]


def sample(settings: Settings, recipe: Recipe, seed: int, count: int) -> list[tuple[str, Request]]:
    """(text, request) of so many chunks, half of docs and half of code."""
    layout, kinds = Layout(settings.home), dict[str, list[str]](md=[], py=[])
    for key in load_plan(layout):
        for row in read_table(layout.partition(key, "chunks"), CHUNKS).to_pylist():
            if (kind := row["path"].rpartition(".")[2]) in kinds:
                kinds[kind].append(row["text"])
    texts = [
        text for found in kinds.values() for text in random.Random(seed).sample(sorted(found), min(len(found), count))
    ]
    asked = [(text, request) for text in texts if (request := recipe.request(text))]
    half = count // 2
    return asked[:half] + asked[-half:]


async def through_vllm(settings: Settings, url: str, requests: Sequence[Request], most: int | None = None) -> Any:
    """Return (seconds, replies) of all requests sent at once; the prompt's fixed part has been read before."""
    async with client_of(settings, [url]) as client:
        bodies = [request.body | ({"max_tokens": most} if most else {}) for request in requests]
        started = time.perf_counter()
        replies = await asyncio.gather(*(client.ask(body) for body in bodies))
        return time.perf_counter() - started, replies


def one_at_a_time(folder: str, asked: Sequence[tuple[str, Request]]) -> dict[str, float]:
    """Print what Outlines + transformers takes, with our grammar and with a free schema; return seconds a chunk."""
    import outlines
    import torch
    from outlines.types import CFG
    from transformers import AutoModelForCausalLM, AutoTokenizer

    warnings.simplefilter("ignore")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = outlines.from_transformers(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16), tokenizer)

    def run(output: Any, request: Request, most: int, backend: str | None) -> tuple[float, str]:
        prompt = tokenizer.apply_chat_template(request.messages, tokenize=False, add_generation_prompt=True)
        started = time.perf_counter()
        generate = outlines.Generator(model, output, backend=backend)
        answer = generate(prompt, max_new_tokens=most, do_sample=False)
        return time.perf_counter() - started, answer

    run(FreeAnswer, asked[0][1], 8, None)
    measured = {}
    for name, taken, most in (
        ("the same grammars", asked, None),
        ("a free Pydantic schema", asked[:: len(asked) // CHUNKS_FREE], FREE_TOKENS),
    ):
        found = []
        for _, request in taken:
            output, backend = (CFG(request.grammar), "xgrammar") if most is None else (FreeAnswer, None)
            found.append(run(output, request, most or request.max_tokens, backend))
        seconds, tokens = (
            sum(values) for values in zip(*((s, len(tokenizer(a)["input_ids"])) for s, a in found), strict=True)
        )
        measured[name] = seconds / len(taken)
        cut = sum(not answer.rstrip().endswith(("]", "}")) for _, answer in found)
        print(
            f"Outlines + transformers, one at a time, {name}: {seconds / len(taken):.2f} s/chunk, "
            f"{tokens / len(taken):.0f} tokens an answer, {cut} of {len(taken)} cut off",
            flush=True,
        )
    return measured


def main() -> None:
    settings = load_settings()
    recipe = recipe_of(settings)
    asked, others = (sample(settings, recipe, seed, CHUNKS_ASKED) for seed in (1, 2))
    with lease(settings, recipe.model, recipe.revision) as url:
        asyncio.run(through_vllm(settings, url, [recipe.canary()]))
        prefill, _ = asyncio.run(through_vllm(settings, url, [request for _, request in others], 1))
        seconds, replies = asyncio.run(through_vllm(settings, url, [request for _, request in asked]))
    stop(settings)
    report(asked, seconds, prefill, replies, recipe)
    for name, slow in one_at_a_time(model_files(settings, recipe.model), asked).items():
        print(f"vLLM has {slow * len(replies) / seconds:.1f} times the throughput of one at a time with {name}")


def report(
    asked: Sequence[tuple[str, Request]], seconds: float, prefill: float, replies: Sequence[Reply], recipe: Recipe
) -> None:
    count = len(replies)
    answers = [
        read_answer(text, reply.content, recipe.taxonomy) for (text, _), reply in zip(asked, replies, strict=True)
    ]
    prompt, out = (sum(getattr(reply, name) for reply in replies) for name in ("prompt_tokens", "completion_tokens"))
    print(f"{count} chunks, {recipe.model}: {prompt / count:.0f} tokens a prompt, {out / count:.0f} an answer")
    print(
        f"  valid {len(answers)}, cut off {sum(reply.status == 'length' for reply in replies)}, "
        f"names not in the chunk {sum(answer.ungrounded for answer in answers)}"
    )
    print(
        f"vLLM, all at once: {seconds / count:.2f} s/chunk; to read as many other prompts takes {prefill / count:.2f} "
        f"of that, which is the processor's own limit: prompts are read no faster for being many",
        flush=True,
    )


if __name__ == "__main__":
    main()
