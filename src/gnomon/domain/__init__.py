"""The pure rules: records, tables of transitions, decisions. Knows no machine."""
