"""What people are told to try after a failure."""

import pytest

from handrail.conversation.stream import NOT_AN_API, StreamFailure
from handrail.errors import ProviderSetupError
from handrail.providers.advice import AskedServer, next_move
from handrail.providers.choose import custom_headers

LOCAL = AskedServer("openai", "http://localhost:8080", "")
VERSIONED = AskedServer("openai", "http://localhost:8080/v1/", "")
ANTHROPIC = AskedServer("anthropic", "http://localhost:8080", "")
KEYED = AskedServer("anthropic", "https://api.anthropic.com", "sk-1")


def failed(status: int | None = None, kind: str = "x", message: str = "no") -> StreamFailure:
    return StreamFailure(kind, message, retryable=False, status=status)


@pytest.mark.parametrize(
    ("server", "failure", "says"),
    [
        (LOCAL, failed(404), "try http://localhost:8080/v1."),
        (LOCAL, failed(kind=NOT_AN_API), "try http://localhost:8080/v1."),
        (LOCAL, failed(308), "try http://localhost:8080/v1."),
        (VERSIONED, failed(405), "Is http://localhost:8080/v1 the address of an API in OpenAI's format?"),
        (ANTHROPIC, failed(404), "--provider openai"),
        (LOCAL, failed(404, message="The model `m` does not exist"), "no model 'm'"),
        (LOCAL, failed(400, kind="model_not_found"), "--model or OPENAI_MODEL"),
        (LOCAL, failed(kind="connect"), "OPENAI_BASE_URL or baseUrl"),
        (LOCAL, failed(402), "Add credit"),
        (LOCAL, failed(429), "--fallback-model"),
        (ANTHROPIC, failed(401), "set ANTHROPIC_API_KEY."),
        (KEYED, failed(401), "Check the key that apiKeyHelper or the program gives."),
        (LOCAL, failed(500), "Try again later."),
        (LOCAL, failed(400), ""),
    ],
)
def test_a_failure_has_a_next_move(server: AskedServer, failure: StreamFailure, says: str) -> None:
    advice = next_move(server, {}, failure, "m")

    assert says in advice
    assert bool(says) == bool(advice)


@pytest.mark.parametrize(
    ("server", "env", "says"),
    [
        (LOCAL, {"LLM_KEY": "x"}, "LLM_KEY is set, but that name is not read"),
        (LOCAL, {"ANTHROPIC_API_KEY": "x"}, "ANTHROPIC_API_KEY is set, but requests in this format do not use it"),
        (LOCAL, {"SSH_KEY": "x", "GITHUB_TOKEN": "x"}, "set OPENAI_API_KEY."),
        (KEYED, {"ANTHROPIC_API_KEY": "sk-1"}, "in ANTHROPIC_AUTH_TOKEN, which is sent as a bearer token"),
        (KEYED, {"ANTHROPIC_AUTH_TOKEN": "sk-1"}, "Check the key in ANTHROPIC_AUTH_TOKEN."),
    ],
)
def test_a_refused_key_is_told_by_its_name_and_never_by_its_value(
    server: AskedServer, env: dict[str, str], says: str
) -> None:
    advice = next_move(server, env, failed(401), "m")

    assert says in advice
    assert "sk-1" not in advice + repr(server)


def test_custom_headers_are_read_line_by_line_and_a_wrong_one_is_an_error_without_its_value() -> None:
    assert custom_headers("X-A: 1\n\n x-b:two: three \n") == (("x-a", "1"), ("x-b", "two: three"))

    for wrong in ("no colon secret", "bad name: secret", "X-A: secr\x07et"):
        with pytest.raises(ProviderSetupError, match="Name: value") as raised:
            custom_headers(wrong)
        assert "secr" not in str(raised.value)
