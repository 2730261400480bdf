"""Lexical retrieval: identifier-aware terms and BM25F, kept in bm25s's score arrays."""
