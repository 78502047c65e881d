"""
Policy: settings that no other source can override, and without which nothing runs.

They come from the policy folders and from any other `PolicySource`. Two are built in: the program that the policy key
`policyCommand` names, and the address of `policyUrl`. Every error here ends the program.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from handrail.config.document import SettingsDocument, document_of, read_document
from handrail.config.merge import merge_values
from handrail.config.places import SettingsPlaces, policy_file
from handrail.config.problems import Problem
from handrail.errors import SettingsError
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.config import commands, policy_url
else:  # few policies name a program or an address
    commands = lazy("handrail.config.commands")
    policy_url = lazy("handrail.config.policy_url")

TIMEOUT = 10.0


class PolicySource(Protocol):
    """Another source of policy, for example a device manager."""

    @property
    def name(self) -> str:
        """The name in messages and in the audit log."""
        ...

    def read(self) -> bytes:
        """Settings as JSON. Raises SettingsError if they are not available."""
        ...


@record
class CommandSource:
    """A program that prints policy settings."""

    arguments: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return " ".join(("policyCommand", *self.arguments[:1]))

    def read(self) -> bytes:
        """What it prints within ten seconds."""
        try:
            if not self.arguments:
                raise OSError("it names no program")
            return commands.output_of(self.arguments, cwd="/", env=self.env, timeout=TIMEOUT)
        except OSError as error:
            raise SettingsError(
                f"{self.name} did not give a policy: {error}. Nothing runs without it; ask your administrator."
            ) from error


def read_policy(
    places: SettingsPlaces,
    env: Mapping[str, str],
    others: Iterable[PolicySource],
    known: Iterable[SettingsDocument] | None,
    problems: list[Problem],
) -> list[SettingsDocument]:
    """
    All policy, the highest first. With the `known` policy of an earlier read, only the files are read again.

    `problems` collects what users should know although the policy can be used.

    Raises:
        SettingsError: some of it cannot be read or understood.
    """
    files = [found for file in places.policy_files() if (found := read_document(file))]
    if known is not None:
        given = [document for document in known if not document.file.family]
        return _usable([*given, *files])
    named = merge_values(document.values for document in _usable(files))
    own = [CommandSource(tuple(command), env)] if (command := named.get("policyCommand")) is not None else []
    given = [document_of(policy_file(other.name), other.read()) for other in (*others, *own)]
    if (url := named.get("policyUrl")) is not None:
        given.append(policy_url.policy_from(url, places.state, env, problems))
    return _usable([*given, *files])


def _usable(documents: list[SettingsDocument]) -> list[SettingsDocument]:
    wrong = [problem for document in documents for problem in document.problems if not problem.hint]
    if wrong:
        raise SettingsError(
            "the policy of this machine cannot be used, and nothing runs without it. Ask your administrator:\n"
            + "\n".join(f"  {problem}" for problem in wrong)
        )
    return documents
