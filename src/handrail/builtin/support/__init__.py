"""Code that several tools share."""
