"""Extraction by a model: what it is asked, what it answers, and the ledger that keeps every answer."""
