"""
Output styles: how answers should be written. One is chosen with the setting `outputStyle`, by its exact name.

    .claude/output-styles/plain.md      its `name`, or the name of the file; the body goes to the model as a reminder
"""

from collections.abc import Iterable

from handrail.extensions.definition_files import UnreadFile, read_definitions
from handrail.extensions.places import ConfigFolder
from handrail.records import record

DEFAULT = "default"
RANKS = {"policy": 0, "user": 1, "plugin": 2, "project": 3}


@record
class OutputStyle:
    """A style. Without `keeps_work` our own words on how to work on software are left out."""

    name: str
    description: str
    body: str
    keeps_work: bool = True
    shown: str = "built in"


BUILT_IN = (
    OutputStyle(DEFAULT, "As handrail answers without a style", ""),
    OutputStyle(
        "Proactive",
        "Goes ahead without asking about details",
        "Work on your own. Where something is not said, choose what a careful engineer would choose, say in a "
        "sentence what you chose, and go on; come back with a question only if a wrong choice could not be undone. "
        "Finish what you begin: run what proves it, repair what you broke on the way, and name what you left.",
    ),
    OutputStyle(
        "Concise",
        "Says as little as possible",
        "Answer in as few words as carry the content. No preamble, no summary of what was just shown, no praise, no "
        "offers. One sentence where one is enough; a list only where there are several things; code without a walk "
        "through it.",
    ),
    OutputStyle(
        "Explanatory",
        "Explains its choices while it works",
        "Teach while you work. Before a change that matters, say in two or three sentences why it is made this way "
        "here: which convention of this project it follows, what else was possible, and what speaks against that. "
        "Keep to what is particular to this code, and keep explanations out of the files themselves.",
    ),
    OutputStyle(
        "Learning",
        "Lets the person write the parts that teach most",
        "The person wants to learn by doing. Do the routine yourself. Where a part is short and holds a real decision"
        " (an algorithm, a data structure, how errors are handled), leave it to them: prepare the place, mark it with"
        " a comment `TODO(you)`, say what it must do and what to weigh, ask them to write it, and wait. Afterwards "
        "look at what they wrote and say one thing that is good and one that could be better.",
    ),
)


@record
class OutputStyles:
    """The styles by their exact names, and what a person should know about their files."""

    by_name: dict[str, OutputStyle]
    problems: tuple[str, ...] = ()


def find_styles(folders: Iterable[ConfigFolder]) -> OutputStyles:
    """All styles in these folders, which come nearest first, and those that are built in."""
    built_in = {each.name: each for each in BUILT_IN}
    found: dict[str, OutputStyle] = {}
    problems: list[str] = []
    for folder in sorted(folders, key=lambda each: RANKS[each.source]):
        for file in read_definitions(folder, "output-styles"):
            if isinstance(file, UnreadFile):
                problems.append(str(file))
                continue
            head = file.content
            name = folder.full_name(head.text("name")) if head.text("name") else file.name
            if folder.source == "project" and name in built_in:
                problems.append(
                    f"{file.shown}: a project cannot replace the built-in style {name}. Give it another name."
                )
                continue
            keeps = head.flag("keep-coding-instructions", default=False)
            style = OutputStyle(name, head.text("description"), head.body, keeps, file.shown)
            first = found.setdefault(name, style)
            if first is not style:
                problems.append(f"{file.shown}: the style {name} is {first.shown}. Rename one to use both.")
    return OutputStyles({**built_in, **found}, tuple(problems))
