"""Instances from the command line, over a running server (JOB-5, UI-4)."""

import json
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.product import up
from support.shell import Shell

pytestmark = pytest.mark.process


def test_instances_are_listed_shown_and_drained(tmp_path: Path) -> None:
    """JOB-5."""
    shell = Shell(tmp_path)
    with up(tmp_path) as product:
        assert "No instance has connected yet." in shell.run("instances", "list").stderr
        url = product.started["address"].replace("http://", "ws://") + "/v1/connect"
        headers = {"Authorization": f"Bearer {product.started['key']}"}
        with connect(url, additional_headers=headers) as socket:
            socket.send(json.dumps({"type": "hello", "role": "pm", "instance": "pm-1", "max_in_flight": 3}))
            instance = json.loads(socket.recv())["instance_id"]
            assert "online" in shell.text("instances", "list", "--role", "pm")
            assert shell.data("instances", "list", "--status", "offline")["items"] == []
            assert shell.data("instances", "show", instance)["max_in_flight"] == 3
            assert "pm-1 is draining; 0 in flight." in shell.text("instances", "drain", instance)
            assert shell.data("instances", "list", "--status", "draining")["items"][0]["id"] == instance
            assert "gnomon_instances_connected 1.0" in product.ask("/metrics")[1]
        assert "There is no instance" in shell.refused("instances", "show", "ins_nobody")
        assert "status" in shell.refused("instances", "list", "--status", "asleep")
