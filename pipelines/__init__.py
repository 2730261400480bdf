"""The stages, in plain Python: nothing here knows of Dagster."""
