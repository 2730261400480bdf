"""`cgrag ui`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cgrag.cli.output import errors


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the UI.")] = 3000,
    host: Annotated[str, typer.Option(help="The address to listen on; the UI has no password.")] = "127.0.0.1",
) -> None:
    """Dagster's web UI and daemon on this project, until Ctrl-C."""
    from cgrag.materialize import end_lost_runs, point_dagster_at
    from pipelines.settings import PROJECT, SETTINGS_FILE, SETTINGS_VARIABLE, load_settings

    settings = load_settings()
    point_dagster_at(settings)
    end_lost_runs(settings)
    errors.print(f"Dagster UI: http://{host}:{port}   assets: http://{host}:{port}/asset-groups   (Ctrl-C ends it)")
    command = str(Path(sys.executable).parent / "dg")
    paths = {
        "QUESTIONS": settings.questions,
        "EXTRACT__TAXONOMY": settings.extract.taxonomy,
        "EXTRACT__PROMPT": settings.extract.prompt,
        "SERVE__FOLDER": settings.serve.folder,
    }
    os.environ.update({f"CGRAG_{name}": str(path) for name, path in paths.items() if path})  # from another folder, too
    os.environ.setdefault(SETTINGS_VARIABLE, str(Path(SETTINGS_FILE).absolute()))
    os.chdir(PROJECT)
    os.execv(command, [command, "dev", "--host", host, "--port", str(port)])
