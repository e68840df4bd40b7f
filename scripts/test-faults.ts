// The long form of test/faults: every fault at every point, and a table of the results. Takes some minutes.

import pLimit from 'p-limit';
import { table } from '../src/text/fit.ts';
import { plainText } from '../src/text/output.ts';
import {
  filled,
  killed,
  type NamedFault,
  pointsOfALife,
  serviceFaults,
  setBack,
} from '../test/faults/faults.ts';
import { survive } from '../test/faults/inject.ts';
import { runScript } from './run-script.ts';
import { setUp } from './set-up/set-up.ts';

/** How many Offsite processes run at a time. Each has its own service, and they share the engine. */
const atATime = 2;

interface Row {
  injected: number;
  lost: number;
  duplicates: number;
}

await runScript(async (signal) => {
  await setUp(process.env, signal);
  const points = Array.from({ length: pointsOfALife }, (_, index) => index + 1);
  const kills = points.map(killed);
  // A set has three batches, and about 82 points.
  const pointsOfASet = Array.from({ length: 20 }, (_, index) => 1 + 4 * index);
  const others = [
    ...points.map(filled),
    ...points.filter((point) => point % 4 === 1).map(setBack),
    ...serviceFaults,
  ];
  const injections = [
    ...kills.map((fault) => ({ fault, claims: false })),
    ...kills.map((fault) => ({ fault, claims: true })),
    ...others.map((fault, index) => ({ fault, claims: index % 2 === 1 })),
    ...pointsOfASet.map((point) => ({ fault: killed(point), claims: false, cases: 5 })),
  ];
  const rows = new Map<string, Row>();
  const limit = pLimit(atATime);
  await Promise.all(injections.map((one) => limit(() => inject(one, rows, signal))));
  print(rows);
  return [...rows.values()].some(({ lost, duplicates }) => lost + duplicates > 0) ? 1 : 0;
});

/** @param injection a fault, whether the service has claims, and the number of cases */
async function inject(
  { fault, claims, cases = 1 }: { fault: NamedFault; claims: boolean; cases?: number },
  rows: Map<string, Row>,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { lost, duplicates, lives, said } = await survive(fault, { claims, cases });
  const of = cases > 1 ? ', in a set of batches' : '';
  const name = `${fault.name}${of}${claims ? ', with claims' : ''}`;
  const row = rows.get(name) ?? { injected: 0, lost: 0, duplicates: 0 };
  rows.set(name, {
    injected: row.injected + 1,
    lost: row.lost + lost,
    duplicates: row.duplicates + duplicates,
  });
  const where = fault.agent ? ` (point ${fault.agent.point})` : '';
  const livesText = lives === 1 ? 'one life' : `${lives} lives`;
  console.log(`${name}${where}: ${livesText}, lost ${lost}, accepted twice ${duplicates}`);
  if (lost + duplicates > 0) console.log(said);
}

function print(rows: ReadonlyMap<string, Row>): void {
  const sum = (field: keyof Row) => [...rows.values()].reduce((total, row) => total + row[field], 0);
  const cells = (row: Row) => [row.injected, row.lost, row.duplicates].map(String);
  const all: Row = { injected: sum('injected'), lost: sum('lost'), duplicates: sum('duplicates') };
  console.log(
    `\n${plainText(
      table(
        ['fault', { right: 'injected' }, { right: 'results lost' }, { right: 'duplicates accepted' }],
        [...[...rows].map(([name, row]) => [name, ...cells(row)]), ['all', ...cells(all)]],
      ),
    )}\n`,
  );
}
