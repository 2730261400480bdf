"""Answers with citations: exactly from the graph where a question asks for structure, else by a model from sources."""
