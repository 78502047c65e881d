"""What is said when the framework of an adapter is not installed, or is too old."""


def import_problem(package: str, error: ImportError) -> ImportError:
    """The error of an adapter whose framework cannot be imported."""
    return type(error)(f"This adapter needs {package}: pip install '{package}' ({error})", name=error.name)
