"""The knowledge graph: entities, edges and mentions from the rows of earlier stages."""
