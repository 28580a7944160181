"""AI GO's two template languages.

`<< config.x >>` is replaced once, when a task gets its parameters (`bind_config`). `{{ sample.x }}` is
rendered for every sample (`SampleTemplate`). Content of a dataset is never a template.
"""

from aigo_bridge.templates.config import bind_config, config_names, is_config_template
from aigo_bridge.templates.names import NamePath, own_text, text_of
from aigo_bridge.templates.sample import CompiledAdapter, SampleTemplate, as_list

__all__ = [
    "CompiledAdapter",
    "NamePath",
    "SampleTemplate",
    "as_list",
    "bind_config",
    "config_names",
    "is_config_template",
    "own_text",
    "text_of",
]
