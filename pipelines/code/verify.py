"""Looking at the stored facts and edges with fresh eyes."""

from collections.abc import Iterable

from pipelines.code.stage import read_sites
from pipelines.code.tables import CODE_FACTS
from pipelines.corpus.scan import Plan
from pipelines.layout import Layout
from pipelines.tables import DOCUMENTS, read_table


def files_without_facts(layout: Layout, keys: Iterable[str]) -> list[str]:
    """Return the Python files that were parsed into chunks and have no facts; partitions without facts do not count."""
    lost = []
    for key in keys:
        if layout.partition(key, "code_facts").exists():
            known = set(read_table(layout.partition(key, "code_facts"), CODE_FACTS)["path"].to_pylist())
            documents = read_table(layout.partition(key, "documents"), DOCUMENTS).to_pylist()
            lost += [row["path"] for row in documents if row["parser"] == "python" and row["path"] not in known]
    return sorted(lost)


def edges_of_no_file(layout: Layout, plan: Plan) -> list[str]:
    """Return the ends of edges that lie in no file of the corpus."""
    files = {row["path"] for rows in plan.partitions.values() for row in rows}
    ends = {
        end
        for table in read_sites(layout).values()
        for column in ("source", "target")
        for end in table[column].unique().to_pylist()
    }
    return sorted(end for end in ends if end.partition("::")[0] not in files)
