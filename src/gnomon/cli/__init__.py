"""The command line: one module per noun, heavy imports inside the commands."""
