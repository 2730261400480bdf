"""`cgrag questions`."""

from pathlib import Path
from typing import Annotated

import typer

from cgrag.cli.output import Json, errors, print_json

app = typer.Typer(help="Question sets of this corpus.", no_args_is_help=True)


@app.command("make")
def make(
    out: Annotated[Path, typer.Option(help="The file to write.")],
    kind: Annotated[str, typer.Option(help="docs: from headings and links; structural: from the code graph.")] = "docs",
    json: Json = False,
) -> None:
    """Write a synthetic question set: what the corpus's own docs ask and answer."""
    from collections import Counter

    from pipelines.corpus.scan import load_plan
    from pipelines.errors import CgragError
    from pipelines.evaluate.sets import synthetic_questions
    from pipelines.layout import Layout
    from pipelines.settings import load_settings
    from pipelines.state import chunk_fingerprints
    from pipelines.tables import write_json

    if kind not in ("docs", "structural"):
        raise typer.BadParameter(f"the kinds are docs and structural, not {kind!r}", param_hint="--kind")
    if kind == "structural":
        raise CgragError(
            "Structural questions need code_edges, which is not built: this version of cgrag cannot build it yet.",
            "Make the others:  cgrag questions make --kind docs --out FILE",
        )
    settings = load_settings()
    layout = Layout(settings.home)
    made = synthetic_questions(settings, chunk_fingerprints(layout, load_plan(layout)))
    if not made["rag_questions"]:
        raise CgragError(
            "The docs of this corpus, if it has any, give no questions: they have no sections or links of use.",
            "Write a question file of your own, and evaluate it:  cgrag evaluate QUESTIONS.json",
        )
    try:
        write_json(out, made)
    except OSError as error:
        raise CgragError(f"{out} cannot be written: {error.strerror}.", "Give another file:  --out FILE") from error
    splits = Counter(row["split"] for row in made["rag_questions"])
    told = ", ".join(f"{count} {split}" for split, count in splits.items())
    errors.print(f"{len(made['rag_questions'])} synthetic questions in {out} ({told}).", markup=False)
    errors.print(f"Evaluate them:  cgrag evaluate {out}", markup=False)
    if json:
        print_json({"out": str(out), "kind": kind, "questions": len(made["rag_questions"]), "splits": dict(splits)})
