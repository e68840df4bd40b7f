import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runners } from '../../runners/index.ts';
import { ServiceClaims } from '../../src/agent/claims.ts';
import { ConfigRevisions } from '../../src/agent/config-revision.ts';
import { deliverLeftovers } from '../../src/agent/delivery.ts';
import type { BatchParts } from '../../src/agent/run-batch.ts';
import { resumable, resumeAny, runSet } from '../../src/agent/run-set.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { TransactionWatch } from '../../src/ledger/records.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { noHostEnvironment } from '../../src/trial/prepare/environment.ts';
import { batchCases, planOf } from './fault-plan.ts';

/**
 * `node agent-program.ts FOLDER URL KEY FAULT POINT CASES`: an agent that resumes what there is to resume, or
 * else starts the batch; then it sends what is left. At the POINT-th point, counted before and after every
 * transaction of the ledger, FAULT happens: `kill` is SIGKILL, `fill` fills the disk, `jump` sets the clock
 * back by a day, `none` is nothing. Prints how many points there were. More CASES than one are a set of
 * batches.
 */
const [dataFolder = '', url = '', apiKey = '', fault = 'none', point = '0', cases = '1'] =
  process.argv.slice(2);

let points = 0;
let jumped = 0;
const clock: Clock = { ...systemClock, now: () => systemClock.now() - jumped };
const at = () => {
  points++;
  if (points !== Number(point)) return;
  if (fault === 'kill') process.kill(process.pid, 'SIGKILL');
  if (fault === 'fill') fill(join(dataFolder, 'filler'));
  if (fault === 'jump') jumped = 24 * 60 * 60_000;
};
const watch: TransactionWatch = { before: at, after: at };

const unused = () => {
  throw new Error('a trial without a model needs no gateway');
};
const say = (message: string) => console.error(message);

await using engine = await connectEngine({ instance: `test-faults-${process.pid}`, clock });
await engine.sweep();
using ledger = new Ledger(dataFolder, clock, { watch });
await using client = createClient({ url, apiKey, clock });
const sender = new ServiceSender({ client, ledger, warn: say });
await using claims = new ServiceClaims({
  client,
  clock,
  agent: ledger.agentId,
  leaseMs: 60_000,
});
const parts: BatchParts = {
  engine,
  client,
  ledger,
  sender,
  runners,
  claims,
  clock,
  service: 'faulty',
  batchCases,
  extraCertificates: undefined,
  revisions: new ConfigRevisions({
    config: { ...ConfigFile.parse({}), file: undefined },
    concurrency: 2,
    host: noHostEnvironment,
    gateway: {
      open: unused,
      limitOf: () => undefined,
      isAbsent: () => false,
      isUnreachable: () => false,
      limits: () => [],
      [Symbol.asyncDispose]: async () => undefined,
    },
  }),
};
const { signal } = new AbortController();

let resumed = 0;
for (const what of resumable(ledger, 'faulty')) {
  const outcome = await resumeAny(what, { startsUnknown: true }, parts, signal, () => undefined);
  say(`resumed ${what.kind}: ${outcome.kind}`);
  if (outcome.kind === 'finished') resumed++;
}
// What came to its end in an earlier life is not started again; a person would see it listed.
const isKnown = ['batches', 'sets'].some((table) => ledger.records.get(`SELECT 1 FROM ${table}`));
if (resumed === 0 && !isKnown) await runSet(planOf(Number(cases)), parts, signal, () => undefined);
await deliverLeftovers({ ledger, clock, sender, service: 'faulty' }, signal, say);
console.log(JSON.stringify({ points, waiting: ledger.outbox.pending().length }));

function fill(file: string): void {
  rmSync(file, { force: true });
  for (const size of [2 ** 20, 4096, 1]) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
