"""Errors in all the shapes that servers give them."""

import pytest

from handrail.conversation.stream import StreamFailure
from handrail.providers.failures import MAX_MESSAGE, from_status


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, b'{"error":{"type":"invalid_request_error","message":"bad"}}', "invalid_request_error", "bad"),
        (
            404,
            b'{"type":"error","error":{"type":"not_found_error","message":"model: x"}}',
            "not_found_error",
            "model: x",
        ),
        (
            429,
            b'{"error":{"code":"rate_limit_exceeded","message":"slow"}}',
            "rate_limit_exceeded",
            "slow",
        ),
        (400, b'{"error":"no such model"}', "http_400", "no such model"),
        (
            422,
            b'{"detail":[{"loc":["body"],"msg":"required"},{"msg":"too long"}]}',
            "http_422",
            "required; too long",
        ),
        (401, b'{"detail":"Unauthorized"}', "http_401", "Unauthorized"),
        (
            400,
            b'{"message":{"detail":[{"msg":"x"}]},"code":"model_not_found"}',
            "model_not_found",
            "x",
        ),
        (503, b'[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]', "UNAVAILABLE", "busy"),
        (
            502,
            b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>x</body></html>",
            "http_502",
            "the server answered with a web page, 'Bad gateway', and not as an API does",
        ),
        (
            500,
            b'{"error":{"message":"<html>no title</html>"}}',
            "http_500",
            "the server answered with a web page and not as an API does",
        ),
        (500, b"", "http_500", "the server gave no reason"),
        (500, b"\xff\xfe", "http_500", "\ufffd\ufffd"),
        (500, b'{"error":null}', "http_500", '{"error":null}'),
    ],
)
def test_the_reason_is_found(status: int, body: bytes, kind: str, message: str) -> None:
    retryable = status in {429, 500, 502, 503}

    assert from_status(status, body) == StreamFailure(kind, message, retryable, status)


def test_a_quota_that_is_used_up_is_not_asked_for_again() -> None:
    body = b'{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"pay"}}'

    assert not from_status(429, body).retryable


def test_a_long_reason_is_cut() -> None:
    assert len(from_status(500, b"x" * 100_000).message) == MAX_MESSAGE
