"""The rules over what a home holds, without building its graph."""

from pipelines.code.stage import read_sites
from pipelines.code.tables import sites_of
from pipelines.corpus.scan import load_plan
from pipelines.extract.taxonomy import Taxonomy
from pipelines.graph.tables import ENTITIES
from pipelines.layout import Layout
from pipelines.rules.corpus import Ruled, find_by_rule
from pipelines.tables import CHUNKS, DOCUMENTS, OUTLINE, read_table, read_tables


def stored_rules(layout: Layout, taxonomy: Taxonomy) -> Ruled:
    """Return what the rules find in the stored corpus; links are among its sites, as the origin link.

    Raises:
        CgragError: the graph, whose symbols and headings the rules know names by, is not built.
    """
    rows = read_table(layout.graph / "entities.parquet", ENTITIES, "Build it:  cgrag run").to_pylist()
    entities = {row["id"]: row for row in rows if row["path"]}
    keys = list(load_plan(layout))
    documents, outline, chunks = (
        read_tables((layout.partition(key, name) for key in keys), schema).to_pylist()
        for name, schema in (("documents", DOCUMENTS), ("outline", OUTLINE), ("chunks", CHUNKS))
    )
    sites = {origin: sites_of(table) for origin, table in read_sites(layout).items()}
    imports = [site for site in sites["parse"] if site.relation == "IMPORTS"]
    found = find_by_rule(entities, documents, outline, chunks, sites["link"], imports, taxonomy)
    found.sites["link"] = sites["link"]
    return found
