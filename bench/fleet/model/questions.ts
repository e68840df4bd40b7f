import { drawChart } from '../../soak/chart.ts';
import { drawLines } from './line-chart.ts';
import { type Scenario, usual } from './scenario.ts';
import { type Simulated, simulate } from './simulate.ts';

/** What was simulated for a question, and its picture. */
export interface Answer {
  name: string;
  question: string;
  rows: Row[];
  svg: string;
}

export interface Row {
  /** What differs from the usual scenario. */
  differs: string;
  result: Simulated;
}

const colors = ['#d03c3c', '#c98a1b', '#2f6fd0', '#2a8c57'];

/** A ratio above it is drawn at the edge: such a fleet does not work. */
const mostShown = 3;

/** What can be asked, by name. */
const questions = {
  usual: theUsual,
  lanes: byLanes,
  slices: bySlices,
  workers: byWorkers,
  heartbeat: byHeartbeat,
  failures: byFailures,
} as const;

/**
 * Simulates all questions, which takes some minutes, or only one.
 *
 * @param trials of each batch, at most
 */
export function* answers(trials: number, only?: string): Generator<Answer> {
  for (const [name, answer] of Object.entries(questions))
    if (only === undefined || only === name) yield answer({ ...usual, trials });
}

function theUsual(base: Scenario): Answer {
  const result = simulate(base);
  const points = (value: (sample: Simulated['samples'][number]) => number) =>
    result.samples.map((sample) => ({ at: sample.at, value: value(sample) }));
  const svg = drawChart({
    title: `${count(base.trials)} trials on ${count(base.workers)} workers`,
    marks: [],
    panels: [
      {
        title: 'trials that workers hold',
        note: `${minutes(result.makespan)} min; ideal: ${minutes(result.ideal)}`,
        color: '#2f6fd0',
        points: points(({ running }) => running),
      },
      {
        title: "changes of workflows' states in a second, with heartbeats",
        note: `at most ${count(Math.round(result.peakChangesPerSecond))}`,
        color: '#2a8c57',
        points: points(({ changesPerSecond }) => changesPerSecond),
      },
    ],
  });
  return { name: 'usual', question: 'How does a large batch go?', rows: [{ differs: '', result }], svg };
}

function byLanes(base: Scenario): Answer {
  const counts = [1, 5, 10, 20, 40, 80, 160];
  return swept('lanes', 'How many lanes of workflows does a batch need?', {
    places: 'lanes',
    at: counts.map(String),
    lines: [10, 30].map((every) => ({
      name: `heartbeats every ${every} s`,
      scenarios: counts.map((lanes) => ({
        ...base,
        ...shared(base, lanes),
        heartbeat: { ...base.heartbeat, every, timeout: every * 6 },
      })),
    })),
  });
}

/** On a twentieth of the workers, which one lane can keep busy. */
function bySlices(base: Scenario): Answer {
  const sizes = [500, 1_000, 2_000, 5_000, 10_000];
  const [workers, trials] = [base.workers / 20, base.trials / 20];
  return swept('slices', 'How long may a workflow be, and what does the next one cost?', {
    places: 'trials of a workflow',
    at: sizes.map(count),
    lines: [false, true].map((overlaps) => ({
      name: overlaps ? 'slices that overlap' : 'one after another',
      scenarios: sizes.map((size) => ({
        ...base,
        workers,
        trials,
        ...shared({ ...base, workers }, 1),
        slice: { ...base.slice, trials: size, overlaps },
      })),
    })),
  });
}

function byWorkers(base: Scenario): Answer {
  const counts = [100, 300, 1_000, 3_000, 10_000];
  return swept('workers', 'How many workers can a server keep busy?', {
    places: 'workers',
    at: counts.map(count),
    lines: [1, 10, 40].map((lanes) => ({
      name: lanes === 1 ? '1 lane' : `${lanes} lanes`,
      scenarios: counts.map((workers) => {
        const trials = (base.trials / usual.workers) * workers;
        return { ...base, workers, trials, ...shared({ ...base, workers }, lanes) };
      }),
    })),
  });
}

function byHeartbeat(base: Scenario): Answer {
  const seconds = [2, 5, 10, 20, 60, 120];
  return swept('heartbeat', 'How often should trials send heartbeats?', {
    places: 'seconds between heartbeats',
    at: seconds.map(String),
    lines: [
      { name: 'a worker dies each week', meanUp: 7 * 24 * 3600 },
      { name: 'each hour', meanUp: 3600 },
    ].map(({ name, meanUp }) => ({
      name,
      scenarios: seconds.map((every) => ({
        ...base,
        heartbeat: { ...base.heartbeat, every, timeout: every * 6 },
        failure: { ...base.failure, meanUp },
      })),
    })),
  });
}

/** With so many lanes that short trials do not saturate them. */
function byFailures(base: Scenario): Answer {
  const hours = [0.5, 1, 4, 24, 168];
  return swept('failures', 'What do machines cost that come and go?', {
    places: 'hours that a worker lives',
    at: hours.map(String),
    lines: [60, 600].map((mean) => ({
      name: `trials of ${mean / 60} min`,
      scenarios: hours.map((lives) => ({
        ...base,
        ...shared(base, 160),
        trial: { ...base.trial, mean, most: mean * 6 },
        failure: { ...base.failure, meanUp: lives * 3600 },
      })),
    })),
  });
}

/** Windows that together hold twice as many trials as the workers run at a time. */
function shared({ workers, capacity }: Scenario, lanes: number): Pick<Scenario, 'lanes' | 'window'> {
  return { lanes, window: Math.ceil((2 * workers * capacity) / lanes) };
}

interface Sweep {
  places: string;
  at: string[];
  lines: { name: string; scenarios: Scenario[] }[];
}

function swept(name: string, question: string, { places, at, lines }: Sweep): Answer {
  const simulated = lines.map((line) => ({ ...line, results: line.scenarios.map(simulate) }));
  return {
    name,
    question,
    rows: simulated.flatMap((line) =>
      line.results.map((result, index) => ({ differs: `${line.name}; ${places}: ${at[index]}`, result })),
    ),
    svg: drawLines({
      title: question,
      places,
      at,
      quantity: `time of the batch / ideal time (${mostShown}: or more)`,
      most: mostShown,
      lines: simulated.map(({ name: line, results }, index) => ({
        name: line,
        color: colors[index] ?? '#000',
        values: results.map(({ makespan, ideal }) => makespan / ideal),
      })),
    }),
  };
}

const count = (value: number) => value.toLocaleString('en');
const minutes = (seconds: number) => count(Math.round(seconds / 60));
