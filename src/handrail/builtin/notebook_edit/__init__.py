"""NotebookEdit: change one cell of a notebook."""

from handrail.builtin.notebook_edit.tool import NotebookEdit

__all__ = ["NotebookEdit"]
