"""How many of something, in words: ``1 schedule``, ``2 schedules``, ``1,000 audit entries``. Knows no noun."""


def counted(count: float, one: str, many: str | None = None) -> str:
    """A number with its noun; ``many`` where that is not ``one`` and an s."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {one if count == 1 else many or f'{one}s'}"
