"""Export of results as a folder that the AI GO platform accepts with `lf run -f run.yaml`."""

from aigo_bridge.exporting.evidence.options import EventChoice, EvidenceOptions
from aigo_bridge.exporting.evidence.writing import EvidenceFolder, export_evidence

__all__ = ["EventChoice", "EvidenceFolder", "EvidenceOptions", "export_evidence"]
