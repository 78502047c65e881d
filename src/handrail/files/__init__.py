"""Files: what was read, text byte by byte, replacing files whole, and taking changes back."""
