"""
The everyday list: lines that developers and coding agents type, and what a session in an ordinary project would decide.

    python -m tests.shell.everyday [LIST]

prints the share of lines that run unasked, and why the others are asked about.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.conversation.blocks import ToolUse
from handrail.session.preview import CallPreview
from handrail.tools.context import RunContext
from handrail.tools.permission import Decision, Verdict
from handrail.tools.request import CallRequest
from handrail.tools.stub import load_tool

LIST = Path(__file__).parent / "corpus" / "everyday.txt"
SECOND_LIST = LIST.with_name("everyday_more.txt")
READING = "reading"
FILES = {
    "README.md": "# A project\n",
    "package.json": '{"name": "app", "version": "1.2.3", "scripts": {"build": "tsc"}, "dependencies": {}}\n',
    "go.mod": "module example.org/app\n",
    "Makefile": "build:\n\techo built\n",
    "docker-compose.yml": "services:\n  web:\n    image: web\n",
    "config.ini": "[app]\nname = app\n",
    "cert.crt": "a certificate\n",
    "a.txt": "a\n",
    "b.txt": "b\n",
    "notes.txt": "an error\n",
    "data.csv": "a,b\n1,2\n",
    "data.xml": "<a/>\n",
    "src/app.py": "import os\n\n\ndef main():\n    return 0\n",
    "src/util.py": "x = 1\n",
    "src/app.ts": "export default 1\n",
    "src/app/view.tsx": "export default 1\n",
    "src/lib/parse.py": "y = 2\n",
    "tests/test_app.py": "def test_main(): ...\n",
    "docs/guide.md": "# Guide\n",
    "bin/tool": "#!/bin/sh\n",
    "dist/app.js": "1\n",
    ".github/workflows/ci.yml": "on: push\n",
    ".gitignore": "dist\n.env\n",
}
SECRETS = {".env": "API_KEY=hunter2\n", "certs/server.key": "a key\n"}
"""As nearly every project has them, beside what is searched."""

OWN_FILES = {
    ".kube/config": "apiVersion: v1\nkind: Config\ncurrent-context: dev\n",
    ".handrail/settings.json": '{"permissions": {"readableServices": ["cluster:dev", "forge:github.com"]}}\n',
}
"""Of a developer who has said once which cluster and forge may be read."""


class EverydayLine(NamedTuple):
    kind: str
    family: str
    command: str


class Judged(NamedTuple):
    line: EverydayLine
    decision: Decision

    @property
    def unasked(self) -> bool:
        return self.decision.verdict is Verdict.ALLOW


def everyday_lines(file: Path = LIST) -> list[EverydayLine]:
    found: list[EverydayLine] = []
    kind = family = ""
    for row in file.read_text(encoding="utf-8").splitlines():
        if row.startswith("== "):
            kind, _, family = row.removeprefix("== ").partition(": ")
        elif row and not row.startswith("# "):
            found.append(EverydayLine(kind, family, row.replace("⏎", "\n")))
    return found


def make_project(base: Path) -> tuple[Path, dict[str, str]]:
    """A project with a history, files that are ignored and a secret, its developer's settings and environment."""
    project, home = base / "project", base / "home"
    for name, text in OWN_FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    places = dict.fromkeys((os.path.dirname(shutil.which("git") or ""), "/usr/bin", "/bin"))  # noqa: PTH120
    env = {"PATH": ":".join(places), "HOME": str(home), "USER": "dev", "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
    for name, text in (FILES | SECRETS).items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(*words: str) -> None:
        who = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
        subprocess.run(["git", *who, *words], cwd=project, env=env, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", "git@github.com:dev/app.git")
    git("add", "src", "tests", "docs", "README.md", "package.json", "a.txt", ".gitignore")
    git("commit", "-qm", "Begin")
    git("tag", "v1.0")
    (project / "src/app.py").write_text("def main():\n    return 1\n")
    git("commit", "-qam", "Go on")
    (project / "a.txt").write_text("changed\n")
    return project, env


async def judge(project: Path, env: Mapping[str, str], lines: list[EverydayLine]) -> list[Judged]:
    """What a session in the project would decide on each line, by the door of `handrail permissions test`."""
    async with CallPreview(project, env, trust=True, on_warning=lambda _text: None) as preview:
        tool = load_tool(preview.loaders["Bash"]())
        found: list[Judged] = []
        for line in lines:
            use = ToolUse("call-1", "Bash", {"command": line.command})
            request = CallRequest.hypothetical(use, tool, RunContext(project))
            found.append(Judged(line, (await preview.look(request, preview.policy)).decision))
    return found


def share(judged: list[Judged]) -> float:
    return sum(each.unasked for each in judged) / len(judged)


def main(file: str = str(LIST)) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project, env = make_project(Path(os.path.realpath(folder)))
        judged = asyncio.run(judge(project, env, everyday_lines(Path(file))))
    reading = [each for each in judged if each.line.kind == READING]
    wrong = [each for each in judged if each.unasked is not (each.line.kind == READING)]
    for each in wrong:
        print(f"{each.line.kind:8} {each.line.family:7} {each.line.command!r}: {each.decision.reason}")
    print(
        f"of {len(judged)} lines {share(judged):.1%} run unasked; of the {len(reading)} that read {share(reading):.1%}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
