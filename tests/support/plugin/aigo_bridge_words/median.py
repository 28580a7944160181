"""`median`: the value in the middle."""

import statistics
from typing import Literal

from aigo_bridge.metrics.compute import over_field
from aigo_bridge.metrics.metric import MetricType
from aigo_bridge.spec.metric import FieldMetric


class MedianMetric(FieldMetric):
    """`median`: the value in the middle; of two values their mean."""

    is_extension = True
    type: Literal["median"]


MEDIAN = MetricType(MedianMetric, lambda metric, scores, _: over_field(metric, scores, statistics.median))
