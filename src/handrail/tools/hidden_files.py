"""Which files searches leave out, in a form that costs little for each file of a large tree."""

from collections.abc import Callable

from handrail.records import record


@record
class HiddenFiles:
    """The files that a rule forbids reading. A file is one of them only if its folder or its name is suspect."""

    is_hidden: Callable[[str, str], bool]
    """Whether the file of a name in a folder, given by its real path, is one of them."""
    is_suspect_folder: Callable[[str], bool]
    is_suspect_name: Callable[[str], bool]
