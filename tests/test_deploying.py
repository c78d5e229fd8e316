"""What is shipped to run the server elsewhere: the image, the compose file, the manifests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from anaphora.testing import run_cli

ROOT = Path(__file__).resolve().parents[1]


def dockerfile() -> list[str]:
    """The instructions of the image, lines that go on joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def manifests() -> dict[str, Any]:
    """The objects for Kubernetes, by their kind."""
    listed = yaml.safe_load((ROOT / "deploy/kubernetes/kustomization.yaml").read_text())
    files = (ROOT / "deploy" / "kubernetes" / name for name in listed["resources"])
    return {one["kind"]: one for one in map(yaml.safe_load, (file.read_text() for file in files))}


def options_of_serve() -> set[str]:
    """The options that `anaphora serve` takes."""
    return set(re.findall(r"--[a-z][a-z-]*", run_cli("serve", "--help").stdout))


def test_the_image_is_run_by_nobody_special() -> None:
    """Not root, its home in a volume, a health check that needs no token, and extras that exist."""
    lines = dockerfile()
    assert "USER anaphora" in lines
    assert "VOLUME /data" in lines
    assert any("/health/live" in line for line in lines if "CMD" in line)
    wanted = re.search(r"'\.\[([a-z,]+)\]'", " ".join(lines))
    assert wanted is not None
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in wanted[1].split(","))
    for line in lines:
        if line.startswith("CMD ["):
            assert set(re.findall(r"--[a-z-]+", line)) <= options_of_serve()


def test_compose_keeps_the_database_to_itself() -> None:
    """Only the server is reached, from this machine alone; no password is written down."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert "ports" not in services["database"]
    assert services["anaphora"]["ports"] == ["127.0.0.1:7411:7411"]
    assert services["anaphora"]["cap_drop"] == ["ALL"]
    assert "${ANAPHORA_DB_PASSWORD" in services["database"]["environment"]["POSTGRES_PASSWORD"]
    assert "${ANAPHORA_DB_PASSWORD}" in services["anaphora"]["environment"]["ANAPHORA_DATABASE"]


def test_pods_have_no_rights_and_are_found_by_their_service() -> None:
    """Not root, nothing to write but their volumes, probes on a route that needs no token."""
    found = manifests()
    assert set(found) == {"Deployment", "Service"}
    template = found["Deployment"]["spec"]["template"]
    assert found["Service"]["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    (container,) = template["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {word for word in container["args"] if word.startswith("--")} <= options_of_serve()
    probes = (container["livenessProbe"], container["readinessProbe"])
    assert {probe["httpGet"]["path"] for probe in probes} == {"/health/live"}
    assert "secretKeyRef" in container["env"][0]["valueFrom"]


def test_workflows_run_what_is_there() -> None:
    """Each workflow is YAML, and the files and commands of this repository that it names exist."""
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = file.read_text()
        assert yaml.safe_load(text)["jobs"]
        for name in re.findall(r"(?:tools|tests|bench)/[a-z_]+\.(?:py|sh)", text):
            assert (ROOT / name).exists(), name
        for target in re.findall(r"make ([a-z -]+)", text):
            listed = (ROOT / "Makefile").read_text()
            assert all(re.search(rf"^{one}:", listed, re.M) for one in target.split()), target
