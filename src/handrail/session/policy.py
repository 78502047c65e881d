"""The policy of a folder, for questions about calls that are not made."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from handrail.config.flags import SettingsFlags
from handrail.errors import HandrailError
from handrail.permissions.policy import NO_EXTRA_MODES, ModeAvailability, Policy
from handrail.session.session_settings import open_settings
from handrail.session.spec import print_warning
from handrail.session.state_folder import state_folder


def current_policy(
    cwd: Path | str,
    variables: Mapping[str, str],
    *,
    mode: str = "",
    settings: str = "",
    add_dirs: Iterable[str] = (),
    flags: ModeAvailability = NO_EXTRA_MODES,
    on_warning: Callable[[str], None] = print_warning,
) -> Policy:
    """The policy in force in a folder; with `flags`, modes may be looked at that could not be entered here."""
    given = SettingsFlags(settings=settings, folders=tuple(add_dirs))
    policy = open_settings(cwd, variables, state_folder(variables), given, on_warning).policy()
    policy = policy if flags is NO_EXTRA_MODES else policy.with_availability(flags)
    try:
        return policy.with_mode(mode) if mode else policy
    except ValueError as error:
        raise HandrailError(str(error)) from error
