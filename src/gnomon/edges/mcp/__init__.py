"""The Model Context Protocol (UI-5): tools for agents that work on tasks, and for those that watch over schedules.

``door`` lets HTTP requests in, ``stdio`` a client on this machine; ``server`` speaks the protocol through the official
SDK, which only these two paths import, and only when somebody comes. What the tools do stands in ``worker_tools`` and
``operator_tools``, and knows no protocol.
"""
