"""From a corpus spec to the list of its files and the plan of partitions."""
