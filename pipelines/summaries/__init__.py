"""Summaries of communities: a model is shown the strongest edges of each, and bound to cite them."""
