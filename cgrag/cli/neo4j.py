"""`cgrag neo4j`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cgrag.cli.output import Json, console, errors, plain, print_json, shown_progress

if TYPE_CHECKING:
    from pipelines.errors import CgragError
    from pipelines.neo4j_store.marker import Marker

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
app = typer.Typer(
    help="The graph in Neo4j: what is there, copies of it, and its removal. It is loaded by cgrag run.",
    no_args_is_help=True,
)


@app.command()
def status(json: Json = False) -> None:
    """Every corpus that the database has, and whether it is whole."""
    from pipelines.neo4j_store.connect import configured, connected
    from pipelines.neo4j_store.marker import read_markers
    from pipelines.settings import load_settings

    settings = load_settings()
    uri = configured(settings)
    with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
        markers = read_markers(session)
    if json:
        print_json({"uri": uri, "corpora": [_row(corpus, marker) for corpus, marker in markers.items()]})
        return
    if not markers:
        console.print(f"Neo4j at {uri} has no graph yet.  Load one:  cgrag run --select neo4j_graph", markup=False)
    for corpus, marker in markers.items():
        console.print(plain(corpus), style="bold", markup=False, end="")
        if isinstance(marker, Exception):
            console.print(f"  {marker}", markup=False)
            continue
        console.print(f"  {marker.state}  of {plain(marker.source)}  generation {marker.generation[:12]}", markup=False)
        if marker.counts:
            counts = "   ".join(f"{count:,} {name}s" for name, count in marker.counts.items())
            console.print(f"  {counts.replace('entitys', 'entities')}", markup=False)


@app.command()
def snapshot(
    corpus: Annotated[str, typer.Option(help="Another corpus of the database than this home's.")] = "",
    json: Json = False,
) -> None:
    """Write all that the database has of the corpus to a file below the home."""
    from pipelines.neo4j_store.load import corpus_name
    from pipelines.neo4j_store.snapshot import take_snapshot
    from pipelines.settings import load_settings

    settings = load_settings()
    with shown_progress() as report:
        path = take_snapshot(settings, corpus or corpus_name(settings), report)
    if json:
        print_json({"snapshot": str(path)})
        return
    console.print(f"{path}  ({path.stat().st_size / 1e6:.1f} MB)", markup=False)
    errors.print(f"Its way back:  cgrag neo4j restore {path}", markup=False)


@app.command()
def restore(path: Path, yes: Yes = False, json: Json = False) -> None:
    """Make the database hold what a snapshot has of its corpus, in place of what is there."""
    from pipelines.neo4j_store.connect import configured
    from pipelines.neo4j_store.snapshot import restore_snapshot
    from pipelines.settings import load_settings

    if not yes and not typer.confirm(f"Replace the graph in Neo4j at {configured(load_settings())}?", err=True):
        raise typer.Exit(1)
    with shown_progress() as report:
        marker = restore_snapshot(load_settings(), path, report)
    if json:
        print_json(_row(marker.corpus, marker))
    else:
        console.print(f"{plain(marker.corpus)} is what it was, generation {marker.generation[:12]}.", markup=False)


@app.command()
def remove(corpus: str, yes: Yes = False, json: Json = False) -> None:
    """Delete all that the database has of a corpus; the home keeps its graph."""
    from pipelines.neo4j_store.connect import configured
    from pipelines.neo4j_store.remove import remove_corpus
    from pipelines.settings import load_settings

    settings = load_settings()
    if not yes and not typer.confirm(f"Delete {corpus} from Neo4j at {configured(settings)}?", err=True):
        raise typer.Exit(1)
    deleted = remove_corpus(settings, corpus)
    if json:
        print_json({"corpus": corpus, "nodes": deleted})
    else:
        console.print(f"{deleted:,} nodes of {plain(corpus)} deleted.", markup=False)


def _row(corpus: str, marker: "Marker | CgragError") -> dict[str, Any]:
    names = ("source", "state", "version", "generation", "counts")
    problem = {"problem": str(marker)} if isinstance(marker, Exception) else {}
    return {"corpus": corpus, **{name: getattr(marker, name, None) for name in names}, **problem}
