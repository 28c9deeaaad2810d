"""What ``gnomon up --demo`` brings: agents that need no network, a team, schedules one can watch. Repeating adds nothing."""

from typing import TYPE_CHECKING, Any

from gnomon.cli.terminal import Terminal

if TYPE_CHECKING:
    from gnomon.cli.api import Api
    from gnomon.settings import Settings

DOCUMENT: dict[str, Any] = {
    "agents": [
        {
            "slug": "demo-greeter",
            "name": "Demo: greets",
            "runtime": {"kind": "python", "path": "gnomon.testing.samples:greet"},
        },
        {
            "slug": "demo-counter",
            "name": "Demo: counts words",
            "runtime": {"kind": "python", "path": "gnomon.testing.samples:count_words"},
        },
        {
            "slug": "demo-writer",
            "name": "Demo: a model that answers offline",
            "runtime": {"kind": "llm", "model": "test", "instructions": "Write one short paragraph."},
        },
    ],
    "teams": [
        {
            "slug": "demo-desk",
            "name": "Demo: write, then count",
            "nodes": [
                {"id": "draft", "agent": "demo-writer", "query": "{{query}}"},
                {
                    "id": "count",
                    "agent": "demo-counter",
                    "query": "{{nodes.draft.output}}",
                    "after": ["draft"],
                },
                {
                    "id": "greet",
                    "agent": "demo-greeter",
                    "query": "the draft has {{nodes.count.output}}",
                    "after": ["count"],
                },
            ],
            "output": "greet",
        }
    ],
    "schedules": [
        {
            "name": "Demo: every five minutes",
            "target": {"kind": "agent", "id": "demo-greeter"},
            "cadence": {"unit": "minute", "every": 5},
            "query": "it is {{now}}",
            "dedup_key": "demo-greeting-{{now}}",
        },
        {
            "name": "Demo: the desk, every hour",
            "target": {"kind": "team", "id": "demo-desk"},
            "cadence": {"unit": "hour", "every": 1},
            "query": "What happened before {{now}}?",
            "dedup_key": "demo-desk-{{now}}",
        },
        {
            "name": "Demo: weekdays at nine in Berlin",
            "target": {"kind": "agent", "id": "demo-writer"},
            "cadence": {
                "unit": "week",
                "days": ["mon", "tue", "wed", "thu", "fri"],
                "at": ["09:00"],
                "zone": "Europe/Berlin",
            },
            "query": "The news of {{date}}",
            "dedup_key": "demo-news-{{date}}",
        },
    ],
}


def bring(out: Terminal, settings: "Settings") -> None:
    """Make what is missing of the demo, and let its new schedules run once, so that there is something to see."""
    from gnomon.adapters import logs
    from gnomon.cli.api import in_process

    logs.configure(level="warning", as_json=False)
    api = in_process(settings)
    try:
        missing = _missing(api)
        made = api.post("/apply", missing)["items"] if missing else []
        for change in made:
            if change["section"] == "schedules":
                api.post(f"/schedules/{change['id']}/run", {})
    finally:
        api.close()
    out.line(
        f"The demo is in place: {len(made)} new. Its schedules run once now, then at their slots."
        if made
        else "The demo is in place already."
    )


def _missing(api: "Api") -> dict[str, list[dict[str, Any]]]:
    """The part of the demo that is not there. What somebody has changed since is theirs, and stays."""
    plan = api.post("/apply", DOCUMENT, query={"dry_run": True})["items"]
    definitions = [(section, definition) for section, inner in DOCUMENT.items() for definition in inner]
    missing: dict[str, list[dict[str, Any]]] = {}
    for change, (section, definition) in zip(plan, definitions, strict=True):
        if change["step"] == "create":
            missing.setdefault(section, []).append(definition)
    return missing
