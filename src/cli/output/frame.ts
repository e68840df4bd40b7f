import { fittedLine, fittedRows, flowed } from '../../text/fit.ts';
import type { Content } from '../../text/output.ts';
import { ours, type Printable, styled, text, type Value } from '../../text/printable.ts';
import { elapsed, timeLeft } from '../../text/quantities.ts';
import type { ActivityState } from './activity.ts';
import { buildStates, phasesOf, spentParts, type VerdictWords, verdictParts } from './activity-text.ts';

/** In terminal cells. */
export interface Size {
  columns: number;
  rows: number;
}

export interface FrameParts {
  size: Size;
  words: VerdictWords;
  /** The characters of some content, with their styles. */
  shown(content: Content): string;
}

/** Rows that stay free for the lines above. */
const rowsAbove = 3;

/** The most lines of outages, and the most of steps. */
const fewRows = 3;

/**
 * The lines at the bottom of a terminal that show what is going on; none if nothing is. They fit into the
 * terminal: names lose their middle, and if there is no room for all rows, the longest-running are shown.
 */
export function frameOf(state: ActivityState, { size, words, shown }: FrameParts): string[] {
  // The last column stays free: some terminals begin a new line when a character fills it.
  const width = Math.max(1, size.columns - 1);
  const rows = Math.max(1, size.rows - rowsAbove - 1);
  const frame: string[] = [];
  const add = (content: Printable, most = rows) => {
    frame.push(
      ...shown(content)
        .split('\n')
        .slice(0, Math.min(most, rows - frame.length)),
    );
  };
  const { planned, steps, outages, builds, running } = state;
  if (planned > 0) for (const line of headLines(state, words, width)) add(line);
  for (const { title, forMs } of steps.slice(0, fewRows))
    add(fittedLine(text`  ${title}  ${ours(elapsed(forMs))}`, width));
  for (const { of, reason, forMs } of outages.slice(0, fewRows)) {
    const [first = ''] = reason.split('\n');
    add(
      fittedLine(text`  ${styled('yellow', of)} has been down for ${ours(elapsed(forMs))}: ${first}`, width),
    );
  }
  const room = rows - frame.length;
  // Trials get what builds leave of the room, and at least half of it.
  const forTrials = Math.min(running.length, Math.max(Math.ceil(room / 2), room - builds.length));
  const buildRows = builds.map(({ what, state: kind, forMs }): Value[] => [
    text`${what}`,
    ours(buildStates[kind]),
    ours(elapsed(forMs)),
  ]);
  addRows(buildRows, buildColumns, room - forTrials);
  const trialRows = running.map(({ trial, phase, forMs }): Value[] => {
    return [trial.case, trial.which, ours(phase), ours(elapsed(forMs))];
  });
  addRows(trialRows, trialColumns, rows - frame.length);
  return frame;

  function addRows(all: Value[][], columns: typeof trialColumns, most: number): void {
    if (all.length === 0 || most <= 0) return;
    const fitting = all.length <= most ? all : all.slice(0, most - 1);
    const lead = text`  ${styled('cyan', ours('…'))} `;
    if (fitting.length > 0) add(fittedRows(columns, fitting, { width, lead }));
    const more = all.length - fitting.length;
    if (more > 0) add(fittedLine(ours(`    and ${more} more`), width));
  }
}

const trialColumns = [{ shrinks: true }, { shrinks: true }, {}, { right: true }];
const buildColumns = [{ shrinks: true }, { shrinks: true }, { right: true }];

/** In terminal cells. */
const widestBar = 20;

function headLines(state: ActivityState, words: VerdictWords, width: number): Printable[] {
  const { planned, done, forMs, leftMs } = state;
  const counts = [ours(`${done}/${planned}`), ...verdictParts(state, words)];
  const cells = Math.min(widestBar, Math.floor(width / 5));
  const full = Math.floor((cells * done) / Math.max(1, planned));
  const bar = text`${styled('green', ours('█'.repeat(full)))}${ours('░'.repeat(cells - full))}`;
  const phases = phasesOf(state);
  const rest = [
    ...(phases === undefined ? [] : [ours(phases)]),
    ...spentParts(state).map(ours),
    ours(leftMs === undefined ? elapsed(forMs) : `${elapsed(forMs)}, ${timeLeft(leftMs)}`),
  ];
  return [[bar, ...counts], rest].map((parts) => flowed(parts, { width, indent: 2, gap: 2 }));
}

/** Shows what is going on. Disposing ends that; what was printed stays. */
export interface Display extends Disposable {
  /** Whether what is going on can be seen all the time. */
  readonly isLive: boolean;
  /** Prints lines that stay. */
  print(content: Content): void;
  /** Notes that something has changed. Costs almost nothing. */
  changed(): void;
}
