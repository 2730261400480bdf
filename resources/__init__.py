"""Dagster resources: thin holders of settings and reporters."""
