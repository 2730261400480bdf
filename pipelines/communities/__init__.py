"""Communities of the graph: what belongs together, at several levels, and what it is called."""
