"""Writes down what requests say of the built-in tools, see handrail.builtin.definitions."""

from handrail.builtin.definitions import FILE, render_definitions
from handrail.builtin.table import base_tools
from handrail.session.services import default_services
from handrail.session.tools import make_catalog
from handrail.tools.stub import load_tool


def main() -> None:
    FILE.write_text("{}\n", "utf-8")  # whatever stood there, perhaps a merge that went wrong, has no say
    catalog = make_catalog(variables={})
    entries = base_tools(lambda: catalog, lambda: default_services({}))
    FILE.write_text(render_definitions(load_tool(entry.load()) for entry in entries), "utf-8")


if __name__ == "__main__":
    main()
