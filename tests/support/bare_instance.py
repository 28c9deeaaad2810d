"""An instance that knows nothing but the socket, as a program: ``bare_instance.py ADDRESS KEY ROLE NAME MANNER``.

It prints each frame that it gets as a line of JSON. Its manner: ``works`` acknowledges and ends triggers, ``holds`` only
acknowledges them, ``deaf`` says nothing but heartbeats.
"""

import json
import sys
import threading
from typing import Any

from websockets.sync.client import connect

BEAT_SECONDS = 0.5


def main(address: str, key: str, role: str, name: str, manner: str) -> None:
    """Connect, say hello, and do as the manner says until the connection ends."""
    url = address.replace("http://", "ws://") + "/v1/connect"
    with connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:

        def say(kind: str, **fields: Any) -> None:
            socket.send(json.dumps({"type": kind, **fields}))

        def beat() -> None:
            stop = threading.Event()
            while not stop.wait(BEAT_SECONDS):
                say("heartbeat")

        say("hello", role=role, instance=name, max_in_flight=10, in_flight=[])
        threading.Thread(target=beat, daemon=True).start()
        for text in socket:
            sys.stdout.write(str(text) + "\n")
            sys.stdout.flush()
            frame = json.loads(text)
            if frame["type"] == "job_trigger" and manner != "deaf":
                say("ack", trigger_id=frame["trigger_id"])
                if manner == "works":
                    say("result", trigger_id=frame["trigger_id"], status="succeeded", note="done")


if __name__ == "__main__":
    main(*sys.argv[1:])
