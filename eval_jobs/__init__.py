"""Evaluation: its assets, jobs and schedules."""
