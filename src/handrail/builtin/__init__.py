"""The tools that come with handrail: one file each, its prompt beside it."""
