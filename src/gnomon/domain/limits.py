"""The limits of one run, held against what a target gave back (TGT-5).

Pure, so that the runtimes and the late completion of a deferred run judge alike. Time is not judged here: the runner
ends an attempt at its deadline.
"""

from gnomon.domain.invocation import Failing, Limits, Result, TargetFailure


def breach(result: Result, limits: Limits) -> TargetFailure | None:
    """The failure that a result is turned into when it is past a limit, else ``None``.

    Output is measured in bytes of UTF-8, cost in dollars. What was spent stays in the failure's usage. No breach is
    retryable: the same work would spend the same again.
    """
    size = len(result.output.encode())
    if limits.output_bytes is not None and size > limits.output_bytes:
        message = f"the output has {size:,} bytes; the limit is {limits.output_bytes:,}"
        return TargetFailure(Failing.OUTPUT_TOO_LARGE, message, usage=result.usage)
    usage = result.usage
    if usage is None:
        return None
    if limits.model_calls is not None and usage.model_calls > limits.model_calls:
        message = f"{usage.model_calls} model calls were made; the limit is {limits.model_calls}"
        return TargetFailure(Failing.MODEL_CALLS_EXCEEDED, message, usage=usage)
    if limits.cost is not None and usage.cost > limits.cost:
        message = f"the run cost {usage.cost:g} dollars; the limit is {limits.cost:g}"
        return TargetFailure(Failing.COST_EXCEEDED, message, usage=usage)
    return None
