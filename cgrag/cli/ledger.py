"""`cgrag ledger`."""

from typing import Any

import typer

from cgrag.cli.output import Json, console, errors, plain, print_json

app = typer.Typer(help="Every answer of every model, by recipe.", no_args_is_help=True)


@app.command("stats")
def stats(json: Json = False) -> None:
    """What the ledger of each recipe holds, and how fast its answers came."""
    from pipelines.extract.recipe import active_recipe
    from pipelines.extract.stats import ledger_stats
    from pipelines.layout import Layout
    from pipelines.settings import load_settings

    settings = load_settings()
    active = active_recipe(settings).id
    rows = ledger_stats(Layout(settings.home), settings.extract)
    if json:
        print_json({"active": active, "recipes": rows})
        return
    if not rows:
        console.print("No model has been asked yet.  Begin:  cgrag run --llm-chunks 64", markup=False)
    for row in rows:
        mark = "  (active)" if row["recipe"] == active else ""
        console.print(f"{row['recipe']}{mark}", style="bold", markup=False)
        counts = f"{row['ok']:,} ok   {row['failed']:,} failed   {row['requests']:,} requests"
        console.print(f"  {counts}   {row['rate']:.1f} chunks/s", markup=False)
        tokens = f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens"
        console.print(f"  {tokens}   {row['segments']} segments   {row['bytes']:,} bytes", markup=False)
        if row["answered_edges"]:
            share = sum(row["degenerate"].values()) / row["answered_edges"]
            console.print(f"  {row['answered_edges']:,} edges answered, {share:.0%} degenerate", markup=False)
        for problem, count in row["problems"].items():
            console.print(f"  {count:,} × {plain(problem)}", markup=False)
        for name in row["set_aside"]:
            console.print(f"  set aside, unreadable: {plain(name)}", markup=False)


@app.command("gc")
def gc(json: Json = False) -> None:
    """Delete results of texts that no chunk of the corpus has any more, of all recipes."""
    import time

    from pipelines.extract.stats import all_live_texts, collect
    from pipelines.layout import Layout
    from pipelines.settings import load_settings

    layout, begun = Layout(load_settings().home), time.time()
    deleted = collect(layout, all_live_texts(layout), begun)
    if json:
        print_json({"deleted": deleted})
        return
    for name, count in deleted.items():
        errors.print(f"{name}: {count:,} results deleted", markup=False)
    if not deleted:
        errors.print("There is no ledger yet.", markup=False)


@app.command("compare")
def compare(first: str, second: str, json: Json = False) -> None:
    """Two recipes side by side, on the chunks of the corpus that each has results of."""
    from pipelines.corpus.scan import load_plan
    from pipelines.extract.stats import compare_recipes
    from pipelines.layout import Layout
    from pipelines.settings import load_settings

    settings = load_settings()
    layout = Layout(settings.home)
    found = compare_recipes(layout, load_plan(layout), settings.extract, (first, second))
    if json:
        print_json(found)
        return
    sides = found["sides"]
    _line("", [side["recipe"] for side in sides])
    for name in ("ok", "entities", "relations", "ungrounded", "refused"):
        _line(name, [f"{side[name]:,}" for side in sides])
    _line("last resorts", [f"{side['last_resort_share']:.0%}" for side in sides])
    for kind in ("types", "relation_types", "problems"):
        for name in sorted({name for side in sides for name in side[kind]}):
            _line(f"  {name}", [f"{side[kind].get(name, 0):,}" for side in sides])
    console.print(
        f"{found['both_ok']:,} chunks are ok in both; {found['names_in_common']:.0%} of their names are the same.",
        markup=False,
    )


def _line(name: str, values: list[Any]) -> None:
    console.print(f"{plain(name):20} {values[0]:>40} {values[1]:>40}", markup=False)
