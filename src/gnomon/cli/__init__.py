"""The command line: one module per noun. Heavy things are imported inside the command that needs them."""
