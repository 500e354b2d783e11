"""evalkit: did one word in a prompt make the application better, worse, or can nobody tell yet?"""

from __future__ import annotations

__version__ = "0.1.0"
