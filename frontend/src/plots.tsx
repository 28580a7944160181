/** Intervals as bars on an axis. Their numbers are always shown as text next to them. */

import type { MetricValue } from "./data";
import { measure, short, type Scale } from "./format";

export interface Axis { low: number; high: number; scale?: Scale | null }

const percent = (axis: Axis, value: number) => Math.max(0, Math.min(100, ((value - axis.low) / (axis.high - axis.low)) * 100));

/** Shared axis of metrics with the same declared scale. */
export function axisOf(values: MetricValue[]): Axis | null {
  const first = values.find((value) => value.scale)?.scale;
  if (!first || values.some((value) => value.scale && (value.scale[0] !== first[0] || value.scale[1] !== first[1]))) return null;
  return { low: first[0], high: first[1], scale: first };
}

export function IntervalPlot({ axis, value, low, high, kind = "", zero }: {
  axis: Axis; value: number; low?: number; high?: number; kind?: string; zero?: number;
}) {
  return (
    <span class={`plot ${kind}`} aria-hidden="true">
      {zero !== undefined && <span class="zero" style={{ left: `${percent(axis, zero)}%` }} />}
      {low !== undefined && high !== undefined && (
        <span class="span" style={{ left: `${percent(axis, low)}%`, width: `${percent(axis, high) - percent(axis, low)}%` }} />
      )}
      {Number.isFinite(value) && <span class="point" style={{ left: `${percent(axis, value)}%` }} />}
    </span>
  );
}

export function MetricPlot({ value, axis }: { value: MetricValue; axis: Axis | null }) {
  if (axis === null || !value.scale) return null;
  return <IntervalPlot axis={axis} value={Number(value.text)} low={value.interval && Number(value.interval[0])} high={value.interval && Number(value.interval[1])} />;
}

export function AxisLabels({ axis }: { axis: Axis }) {
  const middle = (axis.low + axis.high) / 2;
  return <span class="axis" aria-hidden="true">{[axis.low, middle, axis.high].map((value) => <span>{axis.scale ? measure(value, axis.scale) : short(value)}</span>)}</span>;
}
