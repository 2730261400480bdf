"""`cgrag questions`."""

from pathlib import Path
from typing import Annotated

import typer

from cgrag.cli.output import Json, errors, print_json, shown_progress

_WANTS = {"docs": "docs with sections or links of use", "structural": "Python whose calls and bases jedi knows"}
app = typer.Typer(help="Question sets of this corpus.", no_args_is_help=True)


@app.command("make")
def make(
    out: Annotated[Path, typer.Option(help="The file to write.")],
    kind: Annotated[
        str, typer.Option(help="docs: from headings and links; structural: from the code, with jedi's answers.")
    ] = "docs",
    seed: Annotated[int, typer.Option(help="Of structural questions: which names are asked about.")] = 0,
    per_kind: Annotated[int, typer.Option(min=1, help="Of structural questions: how many of each kind at most.")] = 15,
    json: Json = False,
) -> None:
    """Write a synthetic question set: what the corpus's own docs or code ask and answer."""
    from collections import Counter

    from pipelines.corpus.scan import load_plan
    from pipelines.errors import CgragError
    from pipelines.evaluate.sets import structural_set, synthetic_questions
    from pipelines.layout import Layout
    from pipelines.settings import load_settings
    from pipelines.state import chunk_fingerprints
    from pipelines.tables import write_json

    if kind not in ("docs", "structural"):
        raise typer.BadParameter(f"the kinds are docs and structural, not {kind!r}", param_hint="--kind")
    settings = load_settings()
    if kind == "structural":
        with shown_progress() as report:
            made = structural_set(settings, seed, per_kind, report("Asking jedi", "questions"))
    else:
        layout = Layout(settings.home)
        made = synthetic_questions(settings, chunk_fingerprints(layout, load_plan(layout)))
    if not made["rag_questions"]:
        raise CgragError(
            f"This corpus gives no {kind} questions: it has no {_WANTS[kind]}.",
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
