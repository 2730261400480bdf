"""`cgrag llm`."""

from typing import TYPE_CHECKING, Any

import typer

from cgrag.cli.output import Json, console, errors, print_json, shown_progress

if TYPE_CHECKING:
    from pipelines.serve.lease import Server
    from pipelines.settings import Settings

app = typer.Typer(
    help="The local model server: runs start it by themselves and share it, and it stops when it has been idle.",
    no_args_is_help=True,
)


@app.command()
def up(json: Json = False) -> None:
    """Start the server, or find the one that runs, and print its address."""
    from pipelines.extract.client import shown_url
    from pipelines.extract.recipe import active_recipe
    from pipelines.serve.lease import lease
    from pipelines.settings import load_settings

    settings = load_settings()
    if settings.llm_urls:
        errors.print(f"CGRAG_LLM_URLS is set ({', '.join(map(shown_url, settings.llm_urls))}): runs ask there.")
    with shown_progress() as report:
        recipe = active_recipe(settings)
        with lease(settings, recipe.model, recipe.revision, report):
            pass
    _tell(settings, json)


@app.command()
def down(json: Json = False) -> None:
    """Stop the server, unless somebody is using it."""
    from pipelines.serve.lease import stop
    from pipelines.settings import load_settings

    stopped = stop(load_settings())
    if json:
        print_json({"stopped": stopped})
    else:
        console.print("Stopped." if stopped else "No model server runs here.")


@app.command()
def status(json: Json = False) -> None:
    """Whether a server runs, what it serves, and where its log is."""
    from pipelines.settings import load_settings

    _tell(load_settings(), json)


def _tell(settings: "Settings", json: bool) -> None:
    from pipelines.serve.lease import in_use, log_file, running

    server = running(settings)
    used = in_use(settings)
    if json:
        print_json(_document(server, used, str(log_file(settings))))
    elif server is None:
        console.print(
            "No model server runs here; a run that asks a model starts one.      Now:  cgrag llm up", markup=False
        )
    else:
        idle = "in use" if used else f"idle, stops {settings.serve.idle:g} s after its last use"
        console.print(f"{server.model} at {server.url}  ({idle})", markup=False)
        console.print(f"log: {log_file(settings)}", markup=False)


def _document(server: "Server | None", used: bool, log: str) -> dict[str, Any]:
    return {
        "running": server is not None,
        "url": server.url if server else None,
        "model": server.model if server else None,
        "in_use": used,
        "log": log,
    }
