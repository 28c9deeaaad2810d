"""What can be said about an agent's runtime when it is saved, without starting, importing or resolving anything."""

import re

from gnomon.domain.agent import CommandRuntime, HttpRuntime, LlmRuntime, PythonRuntime, RuntimeSpec
from gnomon.domain.errors import Fault
from gnomon.runtimes.addresses import check_url
from gnomon.runtimes.command import check_env
from gnomon.runtimes.sending import check_headers

_PYTHON_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def check_runtime(spec: RuntimeSpec, *, allow_private: bool) -> list[Fault]:
    """Every fault of a runtime's definition, each at its field under ``runtime``; empty when it may be saved."""
    if isinstance(spec, HttpRuntime):
        faults = [
            Fault("runtime.url", message) for message in check_url(spec.url, allow_private=allow_private)
        ]
        return faults + [
            Fault(f"runtime.headers.{name}", message) for name, message in check_headers(spec.headers)
        ]
    if isinstance(spec, CommandRuntime):
        return _faults_of_command(spec)
    if isinstance(spec, PythonRuntime):
        fits = _PYTHON_PATH.fullmatch(spec.path)
        return [] if fits else [Fault("runtime.path", f'"{spec.path}" is not in the form module:callable')]
    if isinstance(spec, LlmRuntime):
        return [] if spec.model.strip() else [Fault("runtime.model", "names no model")]
    return [] if spec.role.strip() else [Fault("runtime.role", "names no role")]


def _faults_of_command(spec: CommandRuntime) -> list[Fault]:
    faults = []
    if not spec.argv or not spec.argv[0].strip():
        faults.append(Fault("runtime.argv", "names no program"))
    if any("\0" in part for part in spec.argv):
        faults.append(Fault("runtime.argv", "holds a NUL"))
    if spec.cwd is not None and (not spec.cwd.startswith("/") or "\0" in spec.cwd):
        faults.append(Fault("runtime.cwd", "must be an absolute path"))
    return faults + [Fault(f"runtime.env.{name}", message) for name, message in check_env(spec.env)]
