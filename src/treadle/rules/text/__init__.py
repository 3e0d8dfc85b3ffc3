"""Command texts: placeholders, and values quoted for the place they stand in."""
