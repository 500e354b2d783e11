"""What every test shares: the tests' own modules can be imported by name."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hypothesis import settings

# Several tests run at once, and threads that wait for each other stall on busy cores.
os.environ.setdefault("EVALKIT_LOCAL_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
# A shell's background job ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A property fails for a counterexample, never for a slow machine; the same examples in every run.
settings.register_profile(
    "evalkit", deadline=None, derandomize=True, database=None, max_examples=50
)
settings.load_profile("evalkit")
