"""Running the Python that task authors write, in a process of its own."""

from aigo_bridge.snippets.encoding import InOut, Remote
from aigo_bridge.snippets.host import SnippetHost, run_in_process
from aigo_bridge.snippets.snippet import Snippet, SnippetLimits

__all__ = ["InOut", "Remote", "Snippet", "SnippetHost", "SnippetLimits", "run_in_process"]
