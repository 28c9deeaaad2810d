"""For tests, ours and yours: a clock driven by hand, a scripted runtime, a one-tick harness."""
