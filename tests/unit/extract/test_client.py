"""The client against a scripted server: what it retries, what it refuses, and how it spreads the work."""

import asyncio
import os

import httpx
import pytest

from pipelines.errors import CgragError
from pipelines.extract.client import MOST_BYTES, ModelClient
from pipelines.extract.recipe import recipe_of
from pipelines.serve.launch import free_port
from pipelines.settings import Settings
from tests.fake_model import MODEL, FakeModel

RECIPE = recipe_of(Settings(extract={"model": MODEL}))
BODY = RECIPE.request("A Name").body


def ask(urls, times=1, **options):
    """Ask so many times at once; return the replies, and how long the client would have slept."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def all_of_them():
        async with ModelClient(urls, sleep=sleep, **options) as client:
            return await asyncio.gather(*(client.ask(BODY) for _ in range(times)))

    return asyncio.run(all_of_them()), slept


def check(urls, **options):
    async def checked():
        async with ModelClient(urls, **options) as client:
            return await client.check(RECIPE)

    return asyncio.run(checked())


def test_an_answer_is_returned_with_its_tokens(fake):
    ((reply,), slept) = ask([fake.url])
    assert (reply.status, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("ok", "stop", 100, 10)
    assert '"Name"' in reply.content
    assert (reply.tries, slept) == (1, [])


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_full_or_failing_server_is_asked_again_with_growing_pauses(fake, status):
    fake.act = lambda text: {"status": status}
    ((reply,), slept) = ask([fake.url], retries=3, backoff=0.5)
    assert (reply.status, reply.tries, fake.requests) == (f"http {status}", 4, 4)
    assert slept == [0.5, 1.0, 2.0]
    assert "scripted" in reply.detail


def test_it_may_recover(fake):
    fake.act = lambda text: {"status": 503} if fake.requests < 3 else None
    ((reply,), _) = ask([fake.url])
    assert (reply.status, reply.tries) == ("ok", 3)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("9999", 60.0), ("soon", 0.5), ("-1", 0.5)])
def test_the_server_may_say_how_long_to_wait(fake, header, seconds):
    fake.act = lambda text: {"status": 429, "headers": {"Retry-After": header}}
    assert ask([fake.url], retries=1)[1] == [seconds]


def test_the_wait_may_be_given_as_a_date(fake):
    fake.act = lambda text: {"status": 429, "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}}
    assert ask([fake.url], retries=1)[1] == [0.0]


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_refused_request_is_not_asked_again(fake, status):
    fake.act = lambda text: {"status": status}
    ((reply,), _) = ask([fake.url])
    assert (reply.status, fake.requests) == (f"http {status}", 1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_the_run_and_is_not_shown(fake, status):
    fake.act = lambda text: {"status": status}
    with pytest.raises(CgragError, match="refuses the API key") as refused:
        ask([fake.url], api_key="sesame")
    assert fake.requests == 1
    assert "CGRAG_LLM_API_KEY" in refused.value.remedy
    assert "sesame" not in str(refused.value)
    assert "bearer sesame" in fake.headers[0].lower()


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ({"content": ""}, "empty answer"),
        ({"content": None}, "empty answer"),
        ({"no_choices": True}, "empty answer"),
        ({"raw": "<html>502</html>"}, "malformed body"),
        ({"raw": ""}, "malformed body"),
        ({"raw": '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": NaN}}'}, "malformed body"),
        ({"raw": "[" * 100_000}, "malformed body"),
        ({"raw": '{"choices": [{"message": {"content": ["x"]}}]}'}, "malformed body"),
        ({"raw": " " * (MOST_BYTES + 1)}, "oversized body"),
        ({"endless": True}, "oversized body"),
        ({"content": "{", "finish_reason": "length"}, "length"),
    ],
)
def test_what_is_no_answer_is_a_kind_of_failure_asked_once(fake, act, status):
    fake.act = lambda text: act
    ((reply,), _) = ask([fake.url])
    assert (reply.status, fake.requests) == (status, 1)
    assert reply.detail


def test_a_slow_server_is_left_after_the_timeout(fake):
    fake.act = lambda text: {"hang": True}
    ((reply,), _) = ask([fake.url], timeout=0.2)
    assert (reply.status, fake.requests) == ("timeout", 1)


def test_a_closed_connection_is_tried_again(fake):
    fake.act = lambda text: {"close": True} if fake.requests == 1 else None
    ((reply,), _) = ask([fake.url])
    assert (reply.status, reply.tries) == ("ok", 2)


def test_no_more_requests_are_under_way_than_allowed_is_the_callers_business_but_capacity_says_how_many(fake):
    assert ModelClient([fake.url, "http://other/v1"], in_flight=5).capacity == 10


def test_endpoints_share_the_work_evenly():
    with FakeModel(delay=0.001) as one, FakeModel(delay=0.001) as two:
        replies, _ = ask([one.url, two.url], times=40)
        assert {reply.status for reply in replies} == {"ok"}
        assert one.requests == two.requests == 20


def test_the_work_of_an_endpoint_that_has_gone_is_done_by_the_other():
    with FakeModel() as one, FakeModel() as two:
        one.stop()
        replies, _ = ask([one.url, two.url], times=40)
        assert {reply.status for reply in replies} == {"ok"}
        assert two.requests == 40


def test_a_server_that_is_down_is_a_connection_failure(fake):
    fake.stop()
    ((reply,), slept) = ask([fake.url])
    assert (reply.status, reply.tries, len(slept)) == ("connection", 3, 2)


# the check at the start


def test_a_sound_server_passes_the_check(fake):
    assert check([fake.url]) == []
    assert fake.requests == 0


def test_a_server_whose_context_is_too_small_is_refused(fake):
    fake.context = 2000
    with pytest.raises(CgragError, match="takes 2,000 tokens of prompt and answer together") as told:
        check([fake.url])
    assert "CGRAG_EXTRACT__MAX_TOKENS" in told.value.remedy
    fake.context = 4096
    assert check([fake.url]) == []


def test_a_server_that_is_down_from_the_start_is_named(fake):
    fake.stop()
    with pytest.raises(CgragError, match="cannot be reached") as told:
        check([fake.url])
    assert fake.url in told.value.problem


def test_one_of_two_may_be_down(fake):
    with FakeModel() as other:
        other.stop()
        (problem,) = check([fake.url, other.url])
        assert other.url in problem


def test_another_model_is_refused_with_the_names_of_both(fake):
    fake.model = "llama-large"
    with pytest.raises(CgragError, match=f"does not serve {MODEL}; it serves llama-large"):
        check([fake.url])


def test_a_server_that_ignores_the_grammar_is_refused(fake):
    fake.binds = False
    with pytest.raises(CgragError, match="does not bind answers") as told:
        check([fake.url])
    assert "The sea!" in told.value.problem


@pytest.mark.parametrize(("status", "told"), [(401, "refuses the API key"), (400, "refuses requests: http 400")])
def test_a_server_that_refuses_is_told_apart(status, told):
    def answer(request):
        return httpx.Response(status, json={"error": "no"})

    with pytest.raises(CgragError, match=told):
        check(["http://model.invalid/v1"], transport=httpx.MockTransport(answer), retries=0)


def test_a_password_in_an_address_is_not_shown():
    def answer(request):
        raise httpx.ConnectError("no route")

    with pytest.raises(CgragError, match=r"http://model\.invalid/v1 cannot be reached: no route") as told:
        check(["http://me:secret@model.invalid/v1"], transport=httpx.MockTransport(answer))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "path"), [("http://m.invalid", "/v1/models"), ("http://m.invalid/api/v2", "/api/v2/models")]
)
def test_an_address_without_a_path_means_v1(url, path):
    seen = []

    def answer(request):
        seen.append(request.url.path)
        raise httpx.ConnectError("enough")

    with pytest.raises(CgragError):
        check([url], transport=httpx.MockTransport(answer))
    assert seen == [path]


def test_a_proxy_of_the_environment_is_not_asked_for_the_way_home(fake, monkeypatch):
    monkeypatch.setitem(os.environ, "HTTP_PROXY", "http://127.0.0.1:9")
    assert check([fake.url]) == []


def test_an_endpoint_that_comes_up_later_is_checked_before_it_is_asked(fake):
    port = free_port()
    down = [f"http://127.0.0.1:{port}/v1"]

    async def asked():
        async with ModelClient([fake.url, *down], retries=0) as client:
            assert len(await client.check(RECIPE)) == 1
            with FakeModel(port=port) as other:
                other.model = "somebody/else"
                for endpoint in client._endpoints:
                    endpoint.rests_until = 0.0
                with pytest.raises(CgragError, match="does not serve"):
                    await asyncio.gather(*(client.ask(BODY) for _ in range(4)))
                return other.requests

    assert asyncio.run(asked()) == 0


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_full_at_the_canary_is_asked_again(fake, status):
    tried = []
    fake.canary = lambda: tried.append(1) or ({"status": status} if len(tried) < 3 else None)
    assert check([fake.url], backoff=0) == [] and len(tried) == 3
