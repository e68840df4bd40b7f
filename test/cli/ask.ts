import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { openService } from '../../src/service/service.ts';
import type { Place } from './place.ts';

/** The runs of some cases as the embedded service lists them to whoever has the key in the data folder. */
export async function runsOf({ dataFolder }: Place, ...caseIds: string[]): Promise<RunRecord[]> {
  await using service = openService({ dataFolder, clock: systemClock, integrations: [] });
  const key = readFileSync(join(dataFolder, 'agent.key'), 'utf8').trim();
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const runs: RunRecord[] = [];
  for (const caseId of caseIds) {
    const asked = { method: 'POST', headers, body: JSON.stringify({ caseId }) };
    const answer = await service.fetch(new Request('http://service.test/v1/evals.runs.list', asked));
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    runs.push(...((await answer.json()) as { runs: RunRecord[] }).runs);
  }
  return runs;
}
