"""Definitions as people write them in files: YAML or JSON, read without YAML's traps. Knows no noun.

Of YAML's guesses only those that JSON has are made: ``at: 10:30`` stays a text (YAML 1.1 makes it 630), dates stay
texts, ``on`` and ``no`` are words.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from gnomon.cli.command import Usage


class _Plain(yaml.SafeLoader):
    """Safe, and with the scalars of JSON alone."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - the library's own name


_SCALARS = (
    ("bool", re.compile(r"^(?:true|false)$"), "tf"),
    ("null", re.compile(r"^(?:null|~|)$"), ["n", "~", ""]),
    ("int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"), "-0123456789"),
    ("float", re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"), "-0123456789"),
)
for _tag, _pattern, _first in _SCALARS:
    _Plain.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))
# a tag that is written out, as !!timestamp, asks for what JSON has not
_KEPT = {f"tag:yaml.org,2002:{tag}" for tag in ("str", "seq", "map", "bool", "null", "int", "float")} | {None}
_Plain.yaml_constructors = {tag: make for tag, make in _Plain.yaml_constructors.items() if tag in _KEPT}


class _Escaping(yaml.SafeDumper):
    """Safe, and with escapes for every character that YAML takes for the end of a line, or that nobody sees."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text.replace("\n", "").isprintable() and not any(
        pattern.match(text) for _, pattern, _ in _SCALARS
    )
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Escaping.add_representer(str, _text)


def read_file(file: str) -> Any:
    """The document in ``file``; ``-`` is standard input.

    Raises:
        Usage: it can't be read, or is neither YAML nor JSON.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = yaml.load(text, _Plain)  # noqa: S506 - a safe loader with fewer guesses
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # an alias may lead round in a circle
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"{file} can't be read: {getattr(error, 'strerror', None) or error}.") from error
    except yaml.YAMLError as error:
        raise Usage(f"{file} is neither YAML nor JSON: {error}") from error
    except RecursionError as error:
        raise Usage(f"{file} can't be read: it is nested too deep.") from error
    except (ValueError, KeyError) as error:
        raise Usage(f"{file} holds what JSON can't: {error}.") from error
    return found


def read_mapping(file: str) -> dict[str, Any]:
    """The same, where it has to be an object."""
    found = read_file(file)
    if not isinstance(found, dict):
        raise Usage(f"{file} has to hold an object: names with values.")
    return found


def written(file: str | None, settings: Sequence[str], **flags: Any) -> dict[str, Any]:
    """A definition from a file, ``--set name=value`` pairs and flags; the later ones win.

    A value of ``--set`` is JSON where it can be read as such, else a text; dots in a name go into objects.
    """
    body = read_mapping(file) if file else {}
    for pair in settings:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Usage(f"--set {pair}: write it as name=value.")
        *parents, last = name.split(".")
        place = body
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise Usage(f"--set {pair}: {parent} is no object.")
        place[last] = _value(value)
    body.update({name: value for name, value in flags.items() if value is not None})
    if not body:
        raise Usage(
            "Nothing is said about it: use -f FILE, --set name=value, or the flags that --help lists."
        )
    return body


def to_yaml(document: Any) -> str:
    """A document as YAML that ``read_file`` and any other reader take alike."""
    return yaml.dump(document, Dumper=_Escaping, sort_keys=False, allow_unicode=True, width=100)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
