"""The graph in Neo4j: the same rows, loaded by difference, and walked with the same answers."""
