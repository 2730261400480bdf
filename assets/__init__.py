"""Dagster assets: each reads its inputs, calls one function of pipelines/, and says what came of it."""
