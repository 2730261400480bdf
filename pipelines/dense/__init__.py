"""Sentence embeddings of units, and the matrix that dense and hybrid search read."""
