import { request } from 'undici';
import { systemClock } from '../../src/base/clock.ts';
import { settleHeap } from '../../src/base/host-program.ts';
import { createClient } from '../../src/client/client.ts';

/**
 * Reads the newest page of a case's runs in a process of its own: `node page-client.ts URL KEY CASE HOW`.
 * With `client` as a command does, with `floor` as bytes that are dropped. Prints milliseconds, the runs or
 * bytes that it read, and its peak resident memory in MiB.
 */
settleHeap();
const [url = '', key = '', caseId = '', how = ''] = process.argv.slice(2);

async function dropped(): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const path = `${url}/v1/evals.runs.list`;
  const { body } = await request(path, { method: 'POST', headers, body: JSON.stringify({ caseId }) });
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.length;
  return bytes;
}

async function read(): Promise<number> {
  await using client = createClient({ url, apiKey: key, clock: systemClock });
  return (await client.page({ caseId })).runs.length;
}

const startedAt = performance.now();
const count = await (how === 'floor' ? dropped() : read());
const ms = performance.now() - startedAt;
console.log(JSON.stringify({ ms, count, peakMiB: Math.round(process.resourceUsage().maxRSS / 1024) }));
