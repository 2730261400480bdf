"""`cgrag doctor`."""

import typer

from cgrag.cli.output import Json, console, plain, print_json

_MARK = {"ok": "[green]ok     [/]", "absent": "[dim]absent [/]", "problem": "[red]problem[/]"}


def doctor(json: Json = False) -> None:
    """Check the machine: what is here, what is not, and what needs it. Exit 1 if something needed is wrong."""
    from cgrag.machine import examine
    from pipelines.settings import load_settings

    findings = examine(load_settings())
    if json:
        print_json({"checks": [vars(finding) for finding in findings]})
    else:
        for finding in findings:
            console.print(f"{_MARK[finding.state]} {finding.name:16} ", end="")
            console.print(plain(finding.detail), markup=False)
            if finding.remedy:
                console.print(f"{'':25}{finding.remedy}", markup=False)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)
