import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { SuiteRates } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { percent, when } from '../parts/quantities.ts';
import { useThemeChanges } from '../parts/use-media.ts';
import { addressOf, go, setQuery } from '../router.ts';

/** Suites that are offered by name; the filter finds the others. */
const suitesShown = 6;

interface RateChartProps {
  suites: SuiteRates[];
  chosen: string | undefined;
  /** The suite of the first batch in the list below. */
  newest: string | undefined;
}

/** The pass rate of a suite over time: the chosen suite, or the first of the list. */
export function RateChart({ suites, chosen, newest }: RateChartProps) {
  const shown = suites.find(({ suite }) => suite === (chosen ?? newest));
  const last = shown?.points.at(-1);
  const offered = suites.slice(0, suitesShown);
  // One batch has no course, and nothing to choose from.
  if (suites.length < 2 && (shown?.points.length ?? 0) < 2) return null;
  return (
    <section class="chart" aria-label="Pass rate over time">
      <div class="chips" role="group" aria-label="Suite">
        <Chip name="All suites" isChosen={chosen === undefined} suite={undefined} />
        {offered.map(({ suite }) => (
          <Chip key={suite} name={line(suite)} isChosen={suite === chosen} suite={suite} />
        ))}
      </div>
      {shown && (
        <p class="caption" title="A whole batch runs all cases of its suite with live models">
          Pass rate of <b>{line(shown.suite)}</b>: {percent(last?.rate)} in its last whole batch
          {shown.points.length > 1 && `, of ${shown.points.length}`}
        </p>
      )}
      {shown && shown.points.length > 1 && <Plot key={shown.suite} rates={shown} />}
    </section>
  );
}

function Chip({ name, isChosen, suite }: { name: string; isChosen: boolean; suite: string | undefined }) {
  return (
    <button type="button" class="chip" aria-pressed={isChosen} onClick={() => setQuery({ suite })}>
      {name}
    </button>
  );
}

const height = 130;

const [minute, hour, day] = [60, 3_600, 86_400];
/** Dates as the rest of the page writes them: by the seconds between two; the first has what is new. */
const dates = [
  [365 * day, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * day, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [day, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [hour, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [minute, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
];

function Plot({ rates }: { rates: SuiteRates }) {
  const host = useRef<HTMLDivElement>(null);
  const [under, setUnder] = useState<number>();
  const theme = useThemeChanges();

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour('--dim'),
      grid: { stroke: colour('--line'), width: 1 },
      font: '12px system-ui',
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { y: { range: [-0.04, 1.04] } },
        axes: [
          { ...axis, ticks: { show: false }, size: 36, space: 80, grid: { show: false }, values: dates },
          {
            ...axis,
            ticks: { show: false },
            size: 48,
            splits: () => [0, 0.5, 1],
            values: (_, splits) => splits.map((split) => percent(split)),
          },
        ],
        series: [
          {},
          {
            stroke: colour('--accent'),
            width: 2,
            points: { show: rates.points.length < 200, size: 6, fill: colour('--surface') },
          },
        ],
        hooks: { setCursor: [({ cursor }) => setUnder(cursor.idx ?? undefined)] },
      },
      [rates.points.map(({ batch }) => batch.startedAt / 1000), rates.points.map(({ rate }) => rate)],
      element,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [rates, theme]);

  const point = under === undefined ? undefined : rates.points[under];
  return (
    <div class="plot">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the table below has a link for each batch */}
      <div
        ref={host}
        role="img"
        aria-label={described(rates)}
        onClick={() => point && go(addressOf(`/batch/${point.batch.key}`))}
      />
      <p class="caption under" aria-hidden="true">
        {point && `${percent(point.rate)} · ${when(point.batch.startedAt)} · ${line(point.batch.id)}`}
      </p>
    </div>
  );
}

function described({ suite, points }: SuiteRates): string {
  const rates = points.slice(-10).map(({ rate }) => percent(rate));
  return `Pass rates of the last batches of ${line(suite)}, oldest first: ${rates.join(', ')}`;
}
