"""The one door to each thing of the machine that a port names."""
