"""
Policy: settings that nobody can override, and without which nothing runs.

They come from the policy folders and from any other `PolicySource`. Two are built in: the program that the policy key
`policyCommand` names, and the address of `policyUrl`. Whatever goes wrong here ends the program.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from handrail.config.document import Document, document_of, read_document
from handrail.config.merge import merged
from handrail.config.places import Places, Spot
from handrail.config.problems import Problem
from handrail.errors import SettingsError
from handrail.records import record

PATIENCE = 10.0


class PolicySource(Protocol):
    """Another place that policy comes from, for example a device manager."""

    @property
    def name(self) -> str:
        """What messages and the audit call it."""
        ...

    def read(self) -> bytes:
        """
        Settings as JSON.

        Raises:
            SettingsError: they cannot be had.
        """
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
        """What it prints. It has ten seconds."""
        from handrail.config.commands import output_of  # noqa: PLC0415  # few have such a program

        try:
            if not self.arguments:
                raise OSError("it names no program")
            return output_of(self.arguments, cwd="/", env=self.env, timeout=PATIENCE)
        except OSError as error:
            raise SettingsError(f"{self.name} did not give a policy: {error}. Nothing runs without it.") from error


def read_policy(
    places: Places,
    env: Mapping[str, str],
    others: Iterable[PolicySource] = (),
    known: Iterable[Document] | None = None,
    news: list[Problem] | None = None,
) -> list[Document]:
    """
    All policy there is, the highest first. `known` was read before: then only the files are read again.

    `news` gets what people should know, although the policy can be used.

    Raises:
        SettingsError: some of it cannot be read or understood.
    """
    files = [found for spot in places.policy_spots() if (found := read_document(spot))]
    if known is not None:
        given = [document for document in known if not document.spot.family]
        return _usable([*given, *files])
    named = merged(document.values for document in _usable(files))
    own = [CommandSource(tuple(command), env)] if (command := named.get("policyCommand")) is not None else []
    given = [
        document_of(Spot("policy", Path(other.name), other.name, "/", ""), other.read()) for other in (*others, *own)
    ]
    if (url := named.get("policyUrl")) is not None:
        from handrail.config.policyurl import policy_from  # noqa: PLC0415  # few have such a server

        given.append(policy_from(url, places.state, env, [] if news is None else news))
    return _usable([*given, *files])


def _usable(documents: list[Document]) -> list[Document]:
    wrong = [problem for document in documents for problem in document.problems if not problem.hint]
    if wrong:
        raise SettingsError(
            "the policy of this machine cannot be used, and nothing runs without it:\n"
            + "\n".join(f"  {problem}" for problem in wrong)
        )
    return documents
