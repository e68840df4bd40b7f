import { setTimeout } from 'node:timers/promises';
import { Pool } from 'undici';
import { ask } from '../service/load.ts';

/**
 * An honest client in a process of its own: `node honest-client.ts URL KEY RUN`. Asks small things one after
 * another, a few milliseconds apart, until its parent disconnects; each time its parent sends a message, it
 * answers with the milliseconds that each request took since the last one.
 */
const [url = '', key = '', run = ''] = process.argv.slice(2);
const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
const claim = { id: run, ordinal: 0, agent: 'honest', seconds: 60 };
const questions = [
  { path: '/v1/auth.whoami', body: '{}' },
  { path: '/v1/evals.runs.list', body: JSON.stringify({ caseId: 'honest' }) },
  { path: '/v1/evals.claimTrial', body: JSON.stringify(claim) },
];
const pool = new Pool(url, { connections: 1, pipelining: 1 });
let took: number[] = [];
process.on('message', () => {
  process.send?.(took);
  took = [];
});
process.once('disconnect', () => process.exit());
for (let request = 0; ; request += 1) {
  const { path, body } = questions[request % questions.length] as (typeof questions)[0];
  took.push((await ask(pool, { path, headers, body })).ms);
  await setTimeout(4);
}
