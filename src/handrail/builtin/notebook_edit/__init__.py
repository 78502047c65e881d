"""NotebookEdit: change one cell of a notebook."""
