"""Pictures of a graph, each one HTML file that needs nothing else (vis-network, bundled, draws it)."""
