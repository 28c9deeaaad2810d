"""Gnomon: a control centre for unattended work.

Each piece of work happens when it should, once, with nobody watching; every slot is answered for.
"""
