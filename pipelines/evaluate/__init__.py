"""How well questions find their sources: question sets, arms, scores with intervals, reports."""
