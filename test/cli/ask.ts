import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunRecord } from '../../src/contract/record.ts';
import { start } from './offsite.ts';
import type { Place } from './place.ts';

/** The runs of a case as `offsite serve` lists them over HTTP, to whoever has the key in the data folder. */
export async function runsOf(place: Place, ...caseIds: string[]): Promise<RunRecord[]> {
  const serving = start(place, ['serve', '--port', '0', '--quiet']);
  try {
    const [, url] = await serving.printed(/Eval Service at (http:\S+);/);
    const key = readFileSync(join(place.dataFolder, 'agent.key'), 'utf8').trim();
    const runs: RunRecord[] = [];
    for (const caseId of caseIds) {
      const answer = await fetch(`${url}/v1/evals.runs.list`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ caseId }),
      });
      if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
      runs.push(...((await answer.json()) as { runs: RunRecord[] }).runs);
    }
    return runs;
  } finally {
    serving.kill('SIGTERM');
    await serving.ended;
  }
}
