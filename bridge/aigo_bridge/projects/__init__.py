"""Evaluation projects: files that `init` creates, and parts that `new` adds.

`templates/` and `parts/` contain these files; `templates/common/` contains the files of every project. Names
with a leading dot start with `dot-…` there, so that tools ignore them.
"""

from aigo_bridge.projects.creating import create_files
from aigo_bridge.projects.files import PARTS, TEMPLATES, part_files, project_files

__all__ = ["PARTS", "TEMPLATES", "create_files", "part_files", "project_files"]
