"""The WebSocket edge: instances connect at ``/v1/connect``, hear what is pushed to them, say what became of it (JOB-5)."""
