"""From a question to ranked chunks."""
