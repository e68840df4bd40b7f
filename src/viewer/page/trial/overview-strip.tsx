import { useEffect, useReducer, useRef } from 'preact/hooks';
import { hasFailed, phaseTitle, type TimelineEntry, type TimelineKind } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { line } from '../parts/foreign.ts';
import { duration } from '../parts/quantities.ts';

interface OverviewStripProps {
  record: TrialRecord;
  entries: TimelineEntry[];
  selected: TimelineEntry | undefined;
  onSelect: (index: number) => void;
}

/** The line of the strip on which a kind is drawn. */
const lanes: Record<TimelineKind, number> = {
  ...{ phase: 0, user: 1, message: 1, note: 1, tool: 2, command: 2, exchange: 3, connection: 3 },
  ...{ verify: 2, validation: 2 },
};
const laneHeight = 9;
const phaseHeight = 18;
const height = phaseHeight + 3 * laneHeight + 4;

/** The whole trial at a glance: phases as bands, entries as marks. A click goes to the nearest entry. */
export function OverviewStrip({ record, entries, selected, onSelect }: OverviewStripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [changes, again] = useReducer((count: number) => count + 1, 0);
  const { startedAt, finishedAt, phases } = record;
  const span = Math.max(1, finishedAt - startedAt);

  useEffect(() => {
    const redraw = () => again(undefined);
    const resized = new ResizeObserver(redraw);
    if (canvas.current) resized.observe(canvas.current);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', redraw);
    addEventListener('offsite-theme', redraw);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', redraw);
      removeEventListener('offsite-theme', redraw);
    };
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context) return;
    const width = element.clientWidth;
    element.width = width * devicePixelRatio;
    element.height = height * devicePixelRatio;
    context.scale(devicePixelRatio, devicePixelRatio);
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const x = (at: number) => Math.round(((at - startedAt) / span) * width);

    const drawn = new Set<number>();
    const paint = (entry: TimelineEntry) => {
      const lane = lanes[entry.kind];
      const left = x(entry.at);
      const right = Math.max(left + 2, x(entry.until ?? entry.at));
      // Thousands of entries share a pixel: one mark of each appearance is enough.
      const mark = ((left * 4 + lane) * 2 + (entry.failed ? 1 : 0)) * 8192 + right - left;
      if (drawn.has(mark)) return;
      drawn.add(mark);
      context.fillRect(left, phaseHeight + 2 + (lane - 1) * laneHeight, right - left, laneHeight - 2);
    };
    const inLanes = entries.filter(({ kind }) => kind !== 'phase');
    context.fillStyle = colour('--mark');
    for (const entry of inLanes) if (!entry.failed) paint(entry);
    context.fillStyle = colour('--failed');
    for (const entry of inLanes) if (entry.failed) paint(entry);
    if (selected) {
      context.fillStyle = colour('--accent');
      context.fillRect(x(selected.at) - 1, 0, 2, height);
    }
  }, [record, entries, selected, changes]);

  const goTo = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = startedAt + ((event.clientX - box.left) / box.width) * span;
    const after = entries.findIndex((entry) => entry.kind !== 'phase' && entry.at >= at);
    onSelect(after === -1 ? entries.length - 1 : after);
  };

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys go through the list below, entry by entry
    // biome-ignore lint/a11y/noStaticElementInteractions: it is only a faster way for those with a mouse
    <div class="strip" onClick={goTo}>
      <div class="phases" aria-hidden="true">
        {phases.map((phase, index) => (
          <span
            key={index}
            class={hasFailed(phase, record) ? 'failed' : ''}
            title={`${line(phaseTitle(phase))}: ${duration(phase.durationMs)}`}
            style={{
              insetInlineStart: `${((phase.startedAt - startedAt) / span) * 100}%`,
              width: `${(phase.durationMs / span) * 100}%`,
            }}
          >
            {phase.name}
          </span>
        ))}
      </div>
      <canvas ref={canvas} style={{ height: `${height}px` }} aria-hidden="true" />
    </div>
  );
}
