"""The files of deploy/: what they publish, and that no secret has a default."""

import re
import shutil
import subprocess

import pytest
import yaml

from pipelines.settings import PROJECT

DEPLOY = PROJECT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


def test_everything_is_published_on_loopback_only():
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(ports) == 5
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_service_says_when_it_is_healthy_and_keeps_its_data_in_a_named_volume():
    assert set(SERVICES) == {"postgres", "neo4j", "vllm", "webserver", "daemon"}
    assert all(service["healthcheck"]["test"] for service in SERVICES.values())
    mounted = {volume.partition(":")[0] for service in SERVICES.values() for volume in service["volumes"]}
    assert {name for name in mounted if not name.startswith("${")} == set(COMPOSE["volumes"])
    assert SERVICES["vllm"]["profiles"] == ["gpu"]


def test_no_secret_has_a_default():
    text = (DEPLOY / "compose.yaml").read_text()
    used = re.findall(r"\$\{(\w*PASSWORD\w*)(:?[-?]?)", text)
    assert used and {how for _, how in used} == {":?"}
    assert "password" not in re.sub(r"\$\{[^}]*\}|#.*", "", text).lower().replace("_password:", "")


def test_both_instances_are_set_up_alike_but_for_their_storage():
    own, postgres = (yaml.safe_load((folder / "dagster.yaml").read_text()) for folder in (PROJECT, DEPLOY))
    assert postgres.pop("storage") == {"postgres": {"postgres_url": {"env": "CGRAG_POSTGRES_URL"}}}
    own.pop("storage")
    assert own == postgres


def test_docker_takes_it(monkeypatch):
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("no docker compose on this machine")
    for name in ("CGRAG_POSTGRES_PASSWORD", "NEO4J_PASSWORD", "CGRAG_CORPUS"):
        monkeypatch.setenv(name, "/x")
    command = [docker, "compose", "--file", str(DEPLOY / "compose.yaml"), "--profile", "gpu", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
