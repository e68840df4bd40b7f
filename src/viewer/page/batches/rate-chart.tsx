import type { SuiteRates } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { percent, when } from '../parts/quantities.ts';
import { addressOf, setQuery } from '../router.ts';

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
      {shown && shown.points.length > 1 && <Plot {...shown} />}
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

/** Batches of the course; older ones are left out. */
const pointsShown = 200;

function Plot({ suite, points }: SuiteRates) {
  const shown = points.slice(-pointsShown);
  const [first, last] = [shown[0]?.batch.startedAt ?? 0, shown.at(-1)?.batch.startedAt ?? 0];
  const placed = shown.map((point) => ({
    ...point,
    x: (100 * (point.batch.startedAt - first)) / Math.max(1, last - first),
    y: 100 * (1 - point.rate),
  }));
  const rates = shown.slice(-10).map(({ rate }) => percent(rate));
  const label = `Pass rates of the last batches of ${line(suite)}, oldest first: ${rates.join(', ')}`;
  return (
    <>
      <div class="plot">
        {[1, 0.5, 0].map((rate) => (
          <span key={rate} class="rate" style={{ top: `${100 * (1 - rate)}%` }} aria-hidden="true">
            {percent(rate)}
          </span>
        ))}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={label}>
          <polyline points={placed.map(({ x, y }) => `${x},${y}`).join(' ')} />
        </svg>
        {/* The table below has a link for each batch, for the keyboard too. */}
        {placed.map(({ batch, rate, x, y }) => {
          const title = `${percent(rate)} · ${when(batch.startedAt)}`;
          const href = addressOf(`/batch/${batch.key}`);
          return (
            <a
              key={batch.key}
              tabIndex={-1}
              href={href}
              title={title}
              style={{ left: `${x}%`, top: `${y}%` }}
            >
              {title}
            </a>
          );
        })}
      </div>
      <p class="caption dates">
        <span>{when(first)}</span>
        <span>{when(last)}</span>
      </p>
    </>
  );
}
