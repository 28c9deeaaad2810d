"""One adapter per kind of agent, behind ports.runtime."""
