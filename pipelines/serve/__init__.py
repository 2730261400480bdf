"""A model server on this machine: its model's files, and one process that all runs share."""
