"""The client of one or many OpenAI-compatible endpoints: bounded, patient where that helps, and never surprised."""

import asyncio
import email.utils
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, Field, ValidationError

from pipelines.errors import CgragError
from pipelines.extract.recipe import CHARACTERS_PER_TOKEN, Request
from pipelines.progress import Reporter, no_report
from pipelines.serve.lease import endpoints
from pipelines.settings import Settings

_MOST_TOKENS = 2**31
MOST_BYTES = 4_000_000
"""A longer body is cut off: no answer that was asked for has so much."""
_CONNECT_SECONDS = 10.0
_LONGEST_WAIT = 60.0
_REST_SECONDS = 5.0
"""An endpoint that could not be reached is left alone for so long, if there is another."""
_URLS_REMEDY = "Name it: CGRAG_LLM_URLS=http://HOST:PORT/v1 (several, comma-separated, share the work)."


class Asked(Protocol):
    """What a server is checked against before it is asked: the model, and room for its shortest useful request."""

    @property
    def model(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def system(self) -> str: ...

    @property
    def max_tokens(self) -> int: ...

    @property
    def least(self) -> int:
        """Tokens beside the fixed prompt: with less room a server is refused at once."""

    @property
    def shorter(self) -> str:
        """The setting that makes answers shorter, as it is told; empty where there is none."""

    def canary(self) -> Request: ...

    def fails_canary(self, content: str) -> bool: ...


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = Field(0, ge=0, le=_MOST_TOKENS)
    completion_tokens: int | None = Field(0, ge=0, le=_MOST_TOKENS)


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Model(BaseModel):
    id: str
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Model]


@dataclass(frozen=True)
class Reply:
    """What came of a request; a failure is a reply, too.

    `status` is ok, length, timeout, connection, "http 400", "malformed body", "oversized body" or "empty answer".
    """

    status: str
    detail: str = ""
    content: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Of the last try alone."""
    tries: int = 1
    retry_after: float | None = None

    @property
    def may_be_retried(self) -> bool:
        return self.status in ("connection", "http 429") or self.status.startswith("http 5")


@dataclass
class _Endpoint:
    """One address, with a client for each request under way: a pool of connections looks at all for each request."""

    url: str
    make: Callable[[], httpx.AsyncClient]
    idle: list[httpx.AsyncClient] = field(default_factory=list)
    every: list[httpx.AsyncClient] = field(default_factory=list)
    busy: int = 0
    served: int = 0
    rests_until: float = 0.0
    context: int | None = None
    """Tokens of prompt and answer together, as it says itself."""
    checked: bool = False
    """Whether it has answered the canary; one that was down at the start is asked it before anything else."""
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self) -> httpx.AsyncClient:
        """Return a client that nobody uses; it goes back to `idle`."""
        if not self.idle:
            self.every.append(self.make())
            self.idle.append(self.every[-1])
        return self.idle.pop()


@dataclass
class ModelClient:
    """Asks the endpoints of `urls`, each request of the one that has the fewest of ours; use it in `async with`.

    Raises:
        CgragError: from `check`, and from `ask` where the server refuses the API key.
    """

    urls: Sequence[str]
    api_key: str | None = None
    in_flight: int = 32
    timeout: float = 120.0
    retries: int = 2
    backoff: float = 0.5
    transport: httpx.AsyncBaseTransport | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _endpoints: list[_Endpoint] = field(default_factory=list, init=False)
    _recipe: Asked | None = field(default=None, init=False)

    async def __aenter__(self) -> "ModelClient":
        tls = ssl.create_default_context()
        self._endpoints = [_Endpoint(shown_url(url), partial(self._client, url, tls)) for url in self.urls]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for endpoint in self._endpoints:
            for client in endpoint.every:
                await client.aclose()

    @property
    def capacity(self) -> int:
        """How many requests may be under way at once."""
        return self.in_flight * len(self.urls)

    @property
    def context(self) -> int | None:
        """The smallest context of the endpoints, in tokens; None where none has told."""
        return min((endpoint.context for endpoint in self._endpoints if endpoint.context), default=None)

    async def check(self, recipe: Asked) -> list[str]:
        """Make sure that the model is served and that its answers are bound to the grammar, at every endpoint.

        Returns what is wrong with those that cannot be reached, where others can; they are asked again later.

        Raises:
            CgragError: none can be reached, one serves another model, ignores the grammar, or refuses the API key.
        """
        self._recipe = recipe
        found = await asyncio.gather(*(self._checked(endpoint, recipe) for endpoint in self._endpoints))
        down = [problem for problem in found if problem]
        if len(down) == len(self._endpoints):
            raise CgragError(down[0], f"Start it, then run again. {_URLS_REMEDY}")
        return down

    async def ask(self, body: dict[str, Any]) -> Reply:
        """Return the reply to a request, after at most `retries` more tries where the server is full, failing or gone.

        Raises:
            CgragError: the server refuses the API key.
        """
        tries = 0
        while True:
            endpoint = self._pick()
            endpoint.busy += 1
            try:
                down = await self._checked(endpoint, self._recipe) if self._recipe else ""
                reply = Reply("connection", down) if down else await self._post(endpoint, body)
            finally:
                endpoint.busy -= 1
                endpoint.served += 1
            tries += 1
            if reply.status == "connection":
                endpoint.rests_until = time.monotonic() + _REST_SECONDS
            if tries > self.retries or not reply.may_be_retried:
                return Reply(**{**vars(reply), "tries": tries})
            await self._wait(tries - 1, reply)

    async def _wait(self, tries: int, reply: Reply) -> None:
        wait = self.backoff * 2**tries if reply.retry_after is None else reply.retry_after
        await self.sleep(min(wait, _LONGEST_WAIT))

    def _pick(self) -> _Endpoint:
        now = time.monotonic()
        ready = [endpoint for endpoint in self._endpoints if endpoint.rests_until <= now] or self._endpoints
        return min(ready, key=lambda endpoint: (endpoint.busy, endpoint.served))

    def _client(self, url: str, tls: ssl.SSLContext) -> httpx.AsyncClient:
        headers = {"Accept-Encoding": "identity"}  # a small body cannot unpack to a large one
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return httpx.AsyncClient(
            base_url=url if urlsplit(url).path.strip("/") else f"{url}/v1",
            headers=headers,
            timeout=httpx.Timeout(self.timeout, connect=_CONNECT_SECONDS, pool=None),
            verify=tls,
            transport=self.transport,
            trust_env=urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"),  # no proxy leads back here
        )

    async def _checked(self, endpoint: _Endpoint, recipe: Asked) -> str:
        """Check an endpoint once; return why it cannot be asked just now."""
        async with endpoint.checking:
            problem = "" if endpoint.checked else await self._check(endpoint, recipe)
            endpoint.checked = not problem
            return problem

    async def _check(self, endpoint: _Endpoint, recipe: Asked) -> str:
        listed = await self._send(endpoint, "GET", "/models", None)
        if listed.status == "connection" or listed.status == "timeout":
            endpoint.rests_until = time.monotonic() + _REST_SECONDS
            return f"The model server {endpoint.url} cannot be reached: {listed.detail}."
        context = None
        if listed.status == "ok":
            try:
                served = {model.id: model.max_model_len for model in _Models.model_validate_json(listed.content).data}
            except ValidationError:
                served = {recipe.model: None}  # a server that lists none may still serve it: the canary tells
            context = endpoint.context = served.get(recipe.model)
            if recipe.model not in served:
                raise CgragError(
                    f"The model server {endpoint.url} does not serve {recipe.model}; it serves {', '.join(served)}.",
                    "Name the one to use: CGRAG_EXTRACT__MODEL=…      or start a server with the other.",
                )
        reply = await self._post(endpoint, recipe.canary().body)
        for tries in range(self.retries):
            if not reply.may_be_retried:
                break
            await self._wait(tries, reply)
            reply = await self._post(endpoint, recipe.canary().body)
        if reply.status == "timeout" or reply.may_be_retried:
            endpoint.rests_until = time.monotonic() + _REST_SECONDS
            return f"The model server {endpoint.url} does not answer: {reply.status}: {reply.detail}."
        if reply.status.startswith("http"):
            raise CgragError(
                f"The model server {endpoint.url} refuses requests: {reply.status}: {reply.detail}.",
                "See the server's log; the model's name and its context length are the usual causes.",
            )
        if reply.status not in ("ok", "length"):
            raise CgragError(
                f"The model server {endpoint.url} does not answer as one: {reply.status}: {reply.detail}.",
                f"Is that its address? {_URLS_REMEDY}",
            )
        prompt = (reply.prompt_tokens or len(recipe.system) // CHARACTERS_PER_TOKEN) + recipe.least
        if context is not None and context < prompt + recipe.max_tokens:
            raise CgragError(
                f"The model server {endpoint.url} takes {context:,} tokens of prompt and answer together; a prompt of "
                f"{recipe.model} has about {prompt:,}, an answer at most {recipe.max_tokens:,}.",
                f"Start it with more (vLLM: --max-model-len){recipe.shorter}.",
            )
        if recipe.fails_canary(reply.content):
            raise CgragError(
                f"The model server {endpoint.url} does not bind answers to a grammar: to the canary it said "
                f"{reply.content[:80]!r}.",
                "Use a server with structured outputs, such as vLLM.",
            )
        return ""

    async def _post(self, endpoint: _Endpoint, body: dict[str, Any]) -> Reply:
        sent = await self._send(endpoint, "POST", "/chat/completions", body)
        return _read(sent) if sent.status == "ok" else sent

    async def _send(self, endpoint: _Endpoint, method: str, path: str, body: dict[str, Any] | None) -> Reply:
        """Return the response as a reply whose content is the whole body."""
        client = endpoint.take()
        started = time.perf_counter()
        status, detail, text, retry_after = "ok", "", "", None
        try:
            async with (
                asyncio.timeout(self.timeout),
                client.stream(method, path, json=body) as response,
            ):
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MOST_BYTES:
                        break
                text = data.decode("utf-8", "replace")
                if response.status_code in (401, 403):
                    raise CgragError(
                        f"The model server {endpoint.url} refuses the API key (http {response.status_code}).",
                        "Set the one that it takes: CGRAG_LLM_API_KEY=…",
                    )
                if not response.is_success:
                    status, detail = f"http {response.status_code}", " ".join(text.split())[:200]
                    retry_after = _seconds(response.headers.get("Retry-After"))
                elif len(data) > MOST_BYTES:
                    status, detail, text = "oversized body", f"cut off after {MOST_BYTES:,} bytes", ""
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            status, detail = "timeout", f"no answer within {self.timeout:g} s"
        except httpx.TransportError as error:
            status, detail = "connection", str(error) or type(error).__name__
        except httpx.HTTPError as error:
            status, detail = "malformed body", str(error) or type(error).__name__
        finally:
            endpoint.idle.append(client)
        return Reply(status, detail, text, seconds=time.perf_counter() - started, retry_after=retry_after)


def client_of(settings: Settings, urls: Sequence[str]) -> ModelClient:
    """Return a client of some endpoints, as the settings describe it."""
    key, extract = settings.llm_api_key, settings.extract
    return ModelClient(
        urls=urls,
        api_key=key.get_secret_value() if key else None,
        in_flight=extract.in_flight,
        timeout=extract.timeout,
        retries=extract.retries,
        backoff=extract.backoff,
    )


def connect(settings: Settings, recipe: Asked, leases: ExitStack, report: Reporter = no_report) -> ModelClient:
    """Return a client of the endpoints that are set, else of a server on this machine, leased until the stack ends."""
    return client_of(settings, endpoints(settings, recipe.model, recipe.revision, leases, report))


def _read(sent: Reply) -> Reply:
    """What a response with status 200 says."""
    try:
        completion = _Completion.model_validate_json(sent.content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        detail = f"{place}: {first['msg']}" if place else first["msg"]
        return Reply("malformed body", detail, seconds=sent.seconds)
    usage = completion.usage or _Usage()
    asked, answered = usage.prompt_tokens or 0, usage.completion_tokens or 0
    choice = completion.choices[0] if completion.choices else _Choice(message=_Message())
    content, reason = choice.message.content or "", choice.finish_reason or ""
    status, detail = "ok", ""
    if reason == "length":
        status, detail = "length", f"cut off after {answered} tokens"
    elif not content.strip():
        status, detail = "empty answer", "no choices" if not completion.choices else "no content"
    return Reply(status, detail, content, reason, asked, answered, sent.seconds)


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of a Retry-After header, which may be a number or a date."""
    if not retry_after:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def shown_url(url: str) -> str:
    """A URL without the password that it may hold."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
