"""The real corpus, indexed once per session by the real command."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import tenacity
from filelock import FileLock

from pipelines.neo4j_store.load import LoadResult, load_graph
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.progress import Reporter, no_report
from pipelines.serve.launch import free_port
from tests.fake_model import MODEL, FakeModel
from tests.graphs import WrittenHome
from tests.neo4j_server import ABSENT, Server, can_start, database_rows, given_server, home_rows, own_server

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Cgrag = Callable[..., subprocess.CompletedProcess[str]]


_LONGEST = ("real_model", "extraction_ui", "daemon", "dense", "neo4j_corpus", "cli", "postgres", "extraction_kill")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first: workers are handed whole files in this order, and end about together."""
    place = {f"test_{name}": number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def environment_of(home: Path, **settings: str) -> dict[str, str]:
    """The environment of a command on `home`, with these settings and none of the machine's user."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CGRAG_", "DAGSTER_"))}
    return own | {"CGRAG_HOME": str(home)} | settings


def cgrag_in(home: Path) -> Cgrag:
    """A function that runs the real `cgrag` on `home`, in a directory of its own, and returns what it printed."""
    environment = environment_of(home, COLUMNS="200")
    home.mkdir(parents=True, exist_ok=True)

    def run(*arguments: str, check: bool = True, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "cgrag"), *arguments]
        done = subprocess.run(
            command, env=environment | settings, cwd=home, capture_output=True, text=True, input=stdin, timeout=600
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


@contextmanager
def ui_of(home: Path, **settings: str) -> Iterator[str]:
    """The address of `cgrag ui` on `home`, which answers; what it prints goes to `ui.log` beside the home."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(Path(sys.executable).parent / "cgrag"), "ui", "--port", str(port)]
    environment = os.environ | settings | {"CGRAG_HOME": str(home), "DAGSTER_HOME": str(PROJECT)}
    log = home.parent / "ui.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            for attempt in tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(httpx.TransportError),
                stop=tenacity.stop_after_delay(120) | (lambda _: process.poll() is not None),
                wait=tenacity.wait_fixed(0.2),
            ):
                with attempt:
                    httpx.get(f"{url}/server_info", timeout=60).raise_for_status()
        except tenacity.RetryError:
            pytest.fail(f"cgrag ui does not answer: {log.read_text()}")
        try:
            yield url
        finally:
            with suppress(ProcessLookupError):  # a test may have killed it
                _stop_group(process)


def asked(url: str, query: str, **variables: Any) -> Any:
    """What the UI's GraphQL answers."""
    answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}, timeout=60).json()
    assert "errors" not in answer, answer
    return answer["data"]


def backfill(url: str, keys: list[str]) -> str:
    """Begin a backfill of `extractions` as the page's dialog does, and return its number."""
    launch = (
        "mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) "
        "{ __typename ... on LaunchBackfillSuccess { backfillId } } }"
    )
    launched = asked(url, launch, p={"assetSelection": [{"path": ["extractions"]}], "partitionNames": keys})
    return str(launched["launchPartitionBackfill"]["backfillId"])


def end_of(url: str, number: str) -> str:
    """The status of a backfill once it has ended."""
    query = "query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }"
    deadline = time.monotonic() + 480
    while time.monotonic() < deadline:
        status = asked(url, query, id=number)["partitionBackfillOrError"]["status"]
        if not status.startswith(("REQUESTED", "CANCELING", "COMPLETING", "FAILING")):
            return str(status)
        time.sleep(0.5)  # between two looks
    raise TimeoutError(status)


@contextmanager
def page_of(url: str) -> Iterator[Any]:
    """A page of a headless Chromium at an address."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(base_url=url, viewport={"width": 1500, "height": 620})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def _stop_group(process: subprocess.Popen[bytes]) -> None:
    """End a server and its children by Ctrl-C, or by force where that is ignored, as it is behind `nohup … &`."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def vllm_home(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A home with the default corpus, built by `cgrag run`; skipped where the package index cannot be reached.

    The first worker that wants it builds it, and the others wait for that and share it.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "vllm"
    with FileLock(f"{folder}.lock"):
        if not (folder / "home").exists():
            done = cgrag_in(folder / "building")("run", check=False)
            if done.returncode and "cannot be reached" in done.stderr:
                pytest.skip("the package index cannot be reached, so there is no vLLM corpus")
            assert done.returncode == 0, done.stderr
            (folder / "building").rename(folder / "home")
    return folder / "home"


@pytest.fixture(scope="session")
def vllm(vllm_home: Path) -> Cgrag:
    """The real `cgrag` on the default corpus."""
    return cgrag_in(vllm_home)


@pytest.fixture(scope="session")
def neo4j(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real Neo4j: the one that NEO4J_URI names, else one of our own."""
    given = given_server()
    if given is not None:
        yield given
        return
    if not can_start():
        pytest.skip(ABSENT)
    own = own_server(tmp_path_factory.mktemp("neo4j"))
    try:
        own.start()
        yield own
    finally:
        own.stop()


class LoadedGraph:
    """A written home, and the same corpus in the database."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.home = WrittenHome(folder, self.name)
        self.settings = server.settings(home=folder)
        self.said: list[str] = []

    def load(self, report: Reporter = no_report) -> LoadResult:
        return load_graph(self.settings, self.home.chunked, report, self.said.append)

    def assert_equal(self) -> None:
        """Every row of the one is in the other."""
        assert database_rows(self.server, self.name) == home_rows(self.home.layout, self.home.chunked)


@pytest.fixture
def new_graph(neo4j: Server, tmp_path: Path) -> Iterator[Callable[[], LoadedGraph]]:
    """Make a written home whose corpus is taken out of the database at the end."""
    made: list[LoadedGraph] = []

    def make() -> LoadedGraph:
        made.append(LoadedGraph(neo4j, tmp_path / f"home-{len(made)}"))
        return made[-1]

    yield make
    for graph in made:
        if [graph.name] in neo4j.values("MATCH (m:CgragGraph) RETURN m.corpus"):
            remove_corpus(graph.settings, graph.name)


@pytest.fixture
def graph(new_graph: Callable[[], LoadedGraph]) -> LoadedGraph:
    return new_graph()


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    """A server that answers as a model does."""
    with FakeModel() as model:
        yield model


@pytest.fixture
def fake_settings(fake: FakeModel) -> dict[str, str]:
    """The settings that extract by `fake`, with a partition for each directory."""
    return {
        "CGRAG_LLM_URLS": fake.url,
        "CGRAG_EXTRACT__MODEL": MODEL,
        "CGRAG_EXTRACT__BACKOFF": "0",
        "CGRAG_PARTITION_CHUNKS": "0",
    }
