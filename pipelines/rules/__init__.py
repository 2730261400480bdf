"""What fixed rules find in docs and comments, with no model: mentions of known symbols and terms, and their edges."""
