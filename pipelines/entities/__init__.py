"""Which entities are likely one and the same: suggested, reviewed by a person, reversible."""
