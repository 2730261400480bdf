"""From the text of a file to units and packed chunks, with exact offsets."""
