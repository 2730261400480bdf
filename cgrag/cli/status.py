"""`cgrag status`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cgrag.cli.output import Json, console, plain, print_json

if TYPE_CHECKING:
    from pipelines.settings import Settings

_NEXT = {"failed": "cgrag resume --failed", "stale": "cgrag run", "missing": "cgrag run"}
_SHOWN_FAILURES = 5
_COLOUR = {"fresh": "green", "stale": "yellow", "missing": "yellow", "failed": "red"}


def status(
    partitions: Annotated[bool, typer.Option("--partitions", help="List every partition and its state.")] = False,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="List what is left out, and files not read as their kind.")
    ] = False,
    json: Json = False,
) -> None:
    """What is built, stale, failed, and what to do next."""
    from pipelines.settings import load_settings

    settings = load_settings()
    report = document(settings)
    if partitions:
        report["partition_list"] = _partition_list(settings)
    if skipped:
        report["skipped_list"], report["problem_list"] = _left_out(settings)
    if json:
        print_json(report)
        return
    print_summary(settings)
    for row in report.get("partition_list", ()):
        reason = f"  {plain(row['reason'])}" if row["reason"] else ""
        console.print(f"  {row['key']:60} {row['files']:>6,} files  {row['state']}{reason}", markup=False)
    for row in [*report.get("skipped_list", ()), *report.get("problem_list", ())]:
        detail = f": {plain(row['detail'])}" if row["detail"] else ""
        console.print(f"  {plain(row['path']):60} {row['reason']}{detail}", markup=False)


def document(settings: "Settings") -> dict[str, Any]:
    """Return the JSON of `cgrag status`; parts that later stages fill are zero until they are built."""
    from pipelines.corpus.fetch import fetch
    from pipelines.corpus.scan import scan
    from pipelines.corpus.spec import recorded_spec
    from pipelines.errors import CgragError
    from pipelines.layout import Layout
    from pipelines.lexical.index import current_generation
    from pipelines.state import asset_states, counts, extraction_counts, graph_counts
    from pipelines.summaries.stored import stored_counts

    spec = recorded_spec(Layout(settings.home))
    found, note = None, ""
    if spec and spec.kind == "folder":
        try:
            found = scan(fetch(spec, settings), settings)
        except CgragError as error:
            note = error.problem
    states = asset_states(settings, found)
    return {
        "corpus": spec.name if spec else None,
        "home": str(settings.home),
        "generation": current_generation(settings),
        "note": note,
        **counts(settings),
        **graph_counts(settings),
        "extraction": extraction_counts(settings),
        "summaries": stored_counts(settings),
        "assets": [
            {"name": state.name, "state": state.state, "detail": state.detail}
            | ({"failed": state.failed} if state.failed else {})
            for state in states
            if state.state != "skipped" and (state.state != "missing" or not state.on_request)
        ],
        "skipped_assets": [
            {"name": state.name, "detail": state.detail} for state in states if state.state == "skipped"
        ],
    }


def print_summary(settings: "Settings") -> None:
    """Print the counts, the state of each asset, and the command to go on with."""
    from pipelines.state import ON_REQUEST

    report = document(settings)
    if report["corpus"] is None:
        console.print(f"{report['home']} holds no corpus yet.\nStart:  cgrag run --corpus SPEC", markup=False)
        return
    console.print(f"{report['corpus']}  in {report['home']}", markup=False)
    numbers = ("files", "skipped", "chunks", "partitions")
    console.print("  " + "   ".join(f"{report[name]:,} {name}" for name in numbers), markup=False)
    if report["edges"]:
        edges = ", ".join(f"{number:,} {relation}" for relation, number in report["edges"].items())
        console.print(f"  {report['symbols']:,} symbols   {report['entities']:,} entities   {edges}", markup=False)
        for verdict in report["admission"]:
            if said := report["edges_by_origin"].get(verdict["origin"]):
                console.print(f"  {_admission(verdict, said)}", markup=False)
    if report["merged"] or report["absent"]:
        console.print(f"  {_merged(report)}", markup=False)
    if report["extraction"]["chunks"]:
        console.print(f"  {_extraction(report['extraction'])}", markup=False)
    if report["summaries"]["communities"]:
        console.print(f"  {_summaries(report['summaries'])}", markup=False)
    for asset in report["assets"]:
        detail = f"  {asset['detail']}" if asset["detail"] else ""
        console.print(f"  [{_COLOUR[asset['state']]}]{asset['state']:8}[/]{asset['name']}{detail}")
        failed = sorted(asset.get("failed", {}).items())
        for key, reason in failed[:_SHOWN_FAILURES]:
            console.print(f"          {plain(key)}: {plain(reason)}", markup=False)
        if len(failed) > _SHOWN_FAILURES:
            console.print(f"          … and {len(failed) - _SHOWN_FAILURES} more:  cgrag status --partitions")
    for asset in report["skipped_assets"]:
        console.print(f"  [dim]skipped {asset['name']}  {asset['detail']}[/]")
    if report["note"]:
        console.print(f"{report['note']} What is stored can still be searched.", markup=False)
    if report["files"] == 0 and report["assets"][0]["state"] == "fresh":
        console.print(
            "The corpus holds nothing to index.  See what was left out:  cgrag status --skipped", markup=False
        )
        return
    wanted = [asset["state"] for asset in report["assets"] if asset["name"] not in ON_REQUEST]
    worst = next((state for state in _NEXT if state in wanted), None)
    console.print(
        f"Next:  {_NEXT[worst]}" if worst else 'Next:  cgrag search "…"      or see the graph:  cgrag ui', markup=False
    )


def _admission(verdict: dict[str, Any], edges: int) -> str:
    """What becomes of the edges of an origin that has to earn it."""
    name = (
        verdict["recipe"] if verdict["origin"] == "llm" else {"rule": "rules"}.get(verdict["origin"], "co-occurrence")
    )
    how = "followed" if verdict["admitted"] else "not followed (cgrag graph NAME --all-origins)"
    return f"{edges:,} of these edges by {name}, {how}: {verdict['why']}"


def _merged(report: dict[str, Any]) -> str:
    """What became of the pairs that were accepted as one."""
    absent = report["absent"]
    shown = ", ".join(plain(id.removeprefix("name:")) for id in absent[:_SHOWN_FAILURES])
    more = f" and {len(absent) - _SHOWN_FAILURES} more" if len(absent) > _SHOWN_FAILURES else ""
    gone = f"; kept for names that the corpus has no longer: {shown}{more}" if absent else ""
    return f"{len(report['merged']):,} names merged into others, as reviewed{gone}"


def _extraction(found: dict[str, Any]) -> str:
    from cgrag.cli.plan import duration

    failed = f", {found['failed']:,} failed" if found["failed"] else ""
    pending = f", {found['pending']:,} pending" if found["pending"] else ""
    left = ""
    if found["pending"] and found["rate"]:
        left = f" ({duration(found['seconds_left'])} at {found['rate']:.1f} chunks/s)"
    vague = f", {found['last_resort_share']:.0%} of names of no certain type" if found["last_resort_share"] else ""
    return f"model: {found['ok']:,} of {found['chunks']:,} chunks extracted{failed}{pending}{left}{vague}"


def _summaries(found: dict[str, int]) -> str:
    left = "".join(f", {found[name]:,} {name}" for name in ("failed", "pending") if found[name])
    return f"model: {found['ok']:,} of {found['communities']:,} communities summarised{left}"


def _partition_list(settings: "Settings") -> list[dict[str, Any]]:
    from pipelines.corpus.scan import load_plan
    from pipelines.layout import Layout
    from pipelines.state import PARTITIONED_ASSETS, chunks_todo, failures

    layout = Layout(settings.home)
    plan = load_plan(layout)
    failed: dict[str, str] = {}
    for asset in reversed(PARTITIONED_ASSETS):  # the first that failed is why
        failed |= {key: f"{asset}: {reason}" for key, reason in failures(layout, asset, plan).items()}
    todo = set(chunks_todo(layout, settings, plan, plan))
    return [
        {
            "key": key,
            "files": len(files),
            "state": "failed" if key in failed else "stale" if key in todo else "fresh",
            "reason": failed.get(key, ""),
        }
        for key, files in plan.partitions.items()
    ]


def _left_out(settings: "Settings") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from pipelines.corpus.scan import load_plan
    from pipelines.layout import Layout
    from pipelines.tables import DOCUMENTS, SKIPPED, read_table

    layout = Layout(settings.home)
    problems = []
    for key in load_plan(layout):
        if layout.partition(key, "documents").exists():
            for row in read_table(layout.partition(key, "documents"), DOCUMENTS).to_pylist():
                if row["problem"]:
                    reason = "read as plain text" if row["parser"] else "not read"
                    problems.append({"path": row["path"], "reason": reason, "detail": row["problem"]})
    return read_table(layout.skipped, SKIPPED).to_pylist(), problems
