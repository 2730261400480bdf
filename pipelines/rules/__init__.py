"""What fixed rules find in docs and comments, with no model: mentions of known symbols and terms, and their edges."""

VERSION = 1
"""Raise it when the same rows give other mentions or edges than before: what was measured holds no longer."""
