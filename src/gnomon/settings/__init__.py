"""Every setting of the program: one inventory, with type, range, default and meaning (OPS-5).

``GNOMON_…`` variables win over ``gnomon.toml``, which wins over defaults; a flag wins over all. Only ``wiring`` and the
command line read settings; nothing here may know any other part but the errors.
"""

from gnomon.settings.inventory import Entry, inventory
from gnomon.settings.loading import config_file, load
from gnomon.settings.record import LogFormat, LogLevel, Settings, variable

__all__ = ["Entry", "LogFormat", "LogLevel", "Settings", "config_file", "inventory", "load", "variable"]
