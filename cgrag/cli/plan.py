"""`cgrag plan`."""

from typing import TYPE_CHECKING

from cgrag.cli.output import Json, console, print_json

if TYPE_CHECKING:
    from pipelines.extract.plan import ExtractionPlan
    from pipelines.summaries.stage import SummaryPlan


def plan(json: Json = False) -> None:
    """What is left to build, and what all that is pending would cost the model, at the speed measured so far."""
    from pipelines.corpus.scan import load_plan
    from pipelines.extract.plan import Order, plan_extraction
    from pipelines.layout import Layout
    from pipelines.settings import load_settings
    from pipelines.state import asset_states

    settings = load_settings()
    assets = [state for state in asset_states(settings) if state.state != "fresh" and not state.on_request]
    asked = plan_extraction(settings, load_plan(Layout(settings.home)), Order())
    if json:
        rows = [{"name": state.name, "state": state.state, "partitions": state.todo} for state in assets]
        extraction = {
            "recipe": asked.recipe,
            "chunks": asked.chunks,
            "partitions": len(asked.wanted),
            "prompt_tokens": asked.prompt_tokens,
            "completion_tokens": asked.completion_tokens,
            "seconds": asked.seconds,
        }
        print_json({"assets": rows, "extraction": extraction})
        return
    console.print("cgrag run would build:" if assets else "cgrag run would build nothing.", markup=False)
    for state in assets:
        console.print(f"  {state.name}  {state.detail or state.state}", markup=False)
    console.print("cgrag run --select extractions would ask:", markup=False)
    for line in told(asked):
        console.print(f"  {line}", markup=False)


def told(plan: "ExtractionPlan") -> list[str]:
    """What an extraction plan says, in lines."""
    if not plan.chunks:
        return ["No chunk is left to ask the model about.", *([plan.note] if plan.note else [])]
    answers = f" and {plan.completion_tokens:,} of answers" if plan.completion_tokens is not None else ""
    seconds = "not measured yet" if plan.seconds is None else duration(plan.seconds)
    lines = [
        f"{plan.chunks:,} chunks of {len(plan.wanted)} partitions, recipe {plan.recipe}",
        f"about {plan.prompt_tokens:,} tokens of prompts{answers}; time: {seconds}",
    ]
    return lines + ([plan.note] if plan.note else [])


def told_summaries(plan: "SummaryPlan") -> list[str]:
    """What a plan of summaries says, in lines."""
    if not plan.requests:
        return ["No community is left to ask the model about."]
    seconds = "not measured yet" if plan.seconds is None else duration(plan.seconds)
    return [f"{plan.communities:,} communities in {plan.requests:,} requests, recipe {plan.recipe}; time: {seconds}"]


def duration(seconds: float) -> str:
    """Seconds as a person would say them.

    >>> duration(42), duration(5400), duration(200_000)
    ('42 s', '1.5 h', '2.3 days')
    """
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
