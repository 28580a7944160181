"""Projects of an evaluation: what `init` begins one with, and the parts that `new` adds.

`templates/` and `parts/` hold the files as they are written; what belongs to every project is in
`templates/common/`. Names that begin with a dot stand there as `dot-…`, so that no tool takes them for its
own.
"""

from aigo_bridge.projects.creating import create_files
from aigo_bridge.projects.files import PARTS, TEMPLATES, part_files, project_files

__all__ = ["PARTS", "TEMPLATES", "create_files", "part_files", "project_files"]
