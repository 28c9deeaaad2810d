"""For those who write agents and instances: what a callable gets and gives, and how an instance connects.

Light to import: the records here are plain dataclasses, so an agent's module costs nothing by naming them.
"""

from gnomon.domain.invocation import Invocation, Message, Result, Usage

__all__ = ["Invocation", "Message", "Result", "Usage"]
