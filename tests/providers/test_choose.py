"""Which provider, model and endpoint are used."""

import subprocess
import sys

import pytest

from handrail.errors import ProviderSetupError
from handrail.providers.choose import DEFAULT_MODELS, Choice, ModelOptions, choose, open_provider
from handrail.providers.client import Provider
from tests.forked import unmeasured

CLAUDE, GPT = DEFAULT_MODELS["anthropic"], DEFAULT_MODELS["openai"]
ANTHROPIC_URL, OPENAI_URL = "https://api.anthropic.com", "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("options", "env", "expected"),
    [
        pytest.param(
            ModelOptions(),
            {"ANTHROPIC_API_KEY": "k"},
            Choice("anthropic", CLAUDE, ANTHROPIC_URL, "k"),
            id="anthropic key",
        ),
        pytest.param(
            ModelOptions(),
            {"ANTHROPIC_API_KEY": " k\n"},
            Choice("anthropic", CLAUDE, ANTHROPIC_URL, "k"),
            id="a key with a line end",
        ),
        pytest.param(
            ModelOptions(),
            {"ANTHROPIC_AUTH_TOKEN": "t"},
            Choice("anthropic", CLAUDE, ANTHROPIC_URL, "t", bearer=True),
            id="anthropic token",
        ),
        pytest.param(
            ModelOptions(),
            {"OPENAI_API_KEY": "k"},
            Choice("openai", GPT, OPENAI_URL, "k", bearer=True),
            id="openai key alone",
        ),
        pytest.param(
            ModelOptions(),
            {"OPENAI_BASE_URL": "http://localhost:11434/v1", "OPENAI_MODEL": "qwen"},
            Choice("openai", "qwen", "http://localhost:11434/v1", "", bearer=True),
            id="a local server needs no key",
        ),
        pytest.param(
            ModelOptions(),
            {"ANTHROPIC_BASE_URL": "http://localhost:1", "ANTHROPIC_MODEL": "glm"},
            Choice("anthropic", "glm", "http://localhost:1", "", bearer=True),
            id="a local server in anthropic's words",
        ),
        pytest.param(
            ModelOptions(model="gpt-4o"),
            {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"},
            Choice("openai", "gpt-4o", OPENAI_URL, "o", bearer=True),
            id="the model's name decides between two keys",
        ),
        pytest.param(
            ModelOptions(model="sonnet"),
            {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"},
            Choice("anthropic", "claude-sonnet-4-6", ANTHROPIC_URL, "a"),
            id="a short name",
        ),
        pytest.param(
            ModelOptions(model="claude-x"),
            {"OPENAI_BASE_URL": "http://proxy/v1"},
            Choice("openai", "claude-x", "http://proxy/v1", "", bearer=True),
            id="any model through the one server there is",
        ),
        pytest.param(
            ModelOptions(provider="openai-responses"),
            {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"},
            Choice("openai-responses", GPT, OPENAI_URL, "o", bearer=True),
            id="the provider's name decides",
        ),
        pytest.param(
            ModelOptions(base_url="http://127.0.0.1:9/v1"),
            {"ANTHROPIC_API_KEY": "a"},
            Choice("openai", GPT, "http://127.0.0.1:9/v1", "", bearer=True),
            id="an unknown server speaks the chat format",
        ),
        pytest.param(
            ModelOptions(base_url="https://api.deepseek.com/anthropic", api_key="d"),
            {},
            Choice("anthropic", CLAUDE, "https://api.deepseek.com/anthropic", "d"),
            id="a path that names the format",
        ),
        pytest.param(
            ModelOptions(model="m", fallback_models=("haiku", "x")),
            {"OPENAI_API_KEY": "o"},
            Choice("openai", "m", OPENAI_URL, "o", bearer=True, fallback_models=("claude-haiku-4-5", "x")),
            id="fallback models",
        ),
    ],
)
def test_choice(options: ModelOptions, env: dict[str, str], expected: Choice) -> None:
    assert choose(options, env) == expected


@pytest.mark.proves("R12")
@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        pytest.param(ModelOptions(), {}, ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", CLAUDE], id="nothing set"),
        pytest.param(
            ModelOptions(model="gpt-4o"), {}, ["OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-4o"], id="no openai key"
        ),
        pytest.param(ModelOptions(provider="gemini"), {}, ["'gemini'", "openai-responses"], id="unknown provider"),
        pytest.param(ModelOptions(base_url="localhost:1"), {}, ["'localhost:1'", "https://"], id="not a URL"),
        pytest.param(ModelOptions(base_url="http://h:x/"), {}, ["'http://h:x/'"], id="not a port"),
        pytest.param(ModelOptions(base_url="http://me:pw@h/"), {}, ["user name", "OPENAI_API_KEY"], id="a user name"),
        pytest.param(ModelOptions(), {"ANTHROPIC_API_KEY": "sk\u2013x"}, ["Copy it again"], id="a dash that is none"),
        pytest.param(ModelOptions(), {"ANTHROPIC_API_KEY": "sk\nx"}, ["Copy it again"], id="a key of two lines"),
    ],
)
def test_what_is_missing_is_said_with_how_to_set_it(
    options: ModelOptions, env: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(ProviderSetupError) as caught:
        choose(options, env)

    assert all(word in str(caught.value) for word in words)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "header"),
    [
        (Choice("anthropic", "m", "http://h", "k"), ("x-api-key", "k")),
        (Choice("anthropic", "m", "http://h", "k", bearer=True), ("authorization", "Bearer k")),
        (Choice("openai", "m", "http://h", "k"), ("authorization", "Bearer k")),
    ],
)
def test_the_key_goes_where_the_api_wants_it(choice: Choice, header: tuple[str, str]) -> None:
    provider = open_provider(choice, {})

    assert isinstance(provider, Provider)
    assert provider.endpoint.headers == (header,)
    assert "k" not in repr(choice).replace("Choice", "").split("'")


def loaded_by(code: str) -> set[str]:
    """The modules that running `code` loads."""
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    # whoever measures the child's coverage would load modules of its own
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=unmeasured())
    return set(run.stdout.split())


def test_choosing_loads_no_http_and_no_adapter() -> None:
    loaded = loaded_by("import handrail.providers.choose")

    assert not loaded & {"asyncio", "ssl", "handrail.http.http1", "httpx2", "json", "handrail.providers.anthropic"}


def test_a_chosen_provider_loads_its_adapter_alone() -> None:
    code = (
        "from handrail.providers.choose import *\n"
        "open_provider(choose(ModelOptions(base_url='http://localhost:1', provider='anthropic'), {}), {})"
    )
    loaded = loaded_by(code)

    assert "handrail.providers.anthropic" in loaded
    unwanted = {"handrail.providers.openai_chat", "httpx2", "httpcore2", "anyio", "pydantic", "tomllib", "random"}
    assert not loaded & unwanted


BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


def test_the_first_of_the_available_models_is_the_default() -> None:
    chosen = choose(ModelOptions(available=("gpt-4o", "sonnet")), BOTH)

    assert (chosen.provider, chosen.model) == ("openai", "gpt-4o")
    assert choose(ModelOptions(model="sonnet", available=("gpt-4o", CLAUDE)), BOTH).model == CLAUDE


@pytest.mark.parametrize(
    ("options", "env"),
    [
        pytest.param(ModelOptions(model="opus", available=("sonnet",)), {}, id="by name"),
        pytest.param(ModelOptions(available=("sonnet",)), {"ANTHROPIC_MODEL": "opus"}, id="by a variable"),
        pytest.param(ModelOptions(available=("sonnet",), fallback_models=("opus",)), {}, id="as a fallback"),
    ],
)
def test_a_model_that_is_not_available_is_refused(options: ModelOptions, env: dict[str, str]) -> None:
    with pytest.raises(ProviderSetupError, match="'opus' may not be used: availableModels in the settings names son"):
        choose(options, BOTH | env)


@pytest.mark.parametrize("options", [ModelOptions(), ModelOptions(model=" "), ModelOptions(fallback_models=("",))])
def test_a_name_of_blanks_is_not_sent_to_the_server(options: ModelOptions) -> None:
    with pytest.raises(ProviderSetupError, match=r"' *' is not the name of a model\. Name one, or none at all"):
        choose(options, BOTH | {"ANTHROPIC_MODEL": " "})


def test_a_server_may_know_models_by_other_names() -> None:
    overrides = {CLAUDE: "prod-sonnet", "haiku": "prod-haiku"}
    options = ModelOptions(model="sonnet", fallback_models=("haiku", "opus"), overrides=overrides)
    chosen = choose(options, BOTH)

    assert (chosen.model, chosen.fallback_models) == ("prod-sonnet", ("prod-haiku", "claude-opus-4-6"))
