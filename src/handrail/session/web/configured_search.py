"""Which service would search the web for a run here, found without opening one."""

from handrail.config.execution import SearchChoice, search_choice
from handrail.errors import ProviderSetupError
from handrail.providers.choose import ModelOptions, choose
from handrail.providers.quirks import quirks_of
from handrail.session.models.options import model_options
from handrail.session.settings.load import LoadedSettings


def configured_search(loaded: LoadedSettings) -> SearchChoice | None:
    """The search service of these settings; None = there is none. `apiKeyHelper` is not run."""
    return search_choice(loaded.settings, loaded.env, by_provider=_provider_searches(loaded))


def _provider_searches(loaded: LoadedSettings) -> bool:
    helped = bool(loaded.settings.get("apiKeyHelper"))
    try:
        choice = choose(model_options(loaded, ModelOptions(api_key="from apiKeyHelper" if helped else "")), loaded.env)
    except ProviderSetupError:
        return False
    return bool(quirks_of(choice.provider, choice.base_url, choice.model).web_search)
