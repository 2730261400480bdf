"""The code graph by parsing: facts of each file, and the linker that joins them."""
