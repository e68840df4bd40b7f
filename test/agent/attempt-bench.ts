import { runners } from '../../runners/index.ts';
import { Admission } from '../../src/agent/admission.ts';
import { Engines } from '../../src/agent/engines/engines.ts';
import type { AttemptParts } from '../../src/agent/finish-trial.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { fixtureCli } from '../trial/fixture-cli.ts';

interface AttemptBench extends AsyncDisposable {
  /** The engines give the seats of trials. */
  engines: Engines;
  admission: Admission;
  parts: Omit<AttemptParts, 'seat'>;
}

/** What attempts of trials need of an agent that has one engine. The fixture CLI is among its harnesses. */
export function openAttemptBench(
  engine: Engine,
  { ledger, gateway, clock }: Pick<AttemptParts, 'ledger' | 'gateway'> & { clock: Clock },
  { concurrency = 1 } = {},
): AttemptBench {
  const all = [...runners, fixtureCli];
  const random = () => 0;
  const patienceMs = 600_000;
  const sandboxes = new Sandboxes(engine, undefined, { runners: all });
  const engines = new Engines({
    engines: [engine],
    areSeveral: false,
    check: { fits: async () => true },
    clock,
    random,
    patienceMs,
    observe: () => undefined,
  });
  const admission = new Admission({
    clock,
    concurrency,
    room: { cpus: 4, memory: 8e9 },
    requireRoom: async () => undefined,
  });
  return {
    engines,
    admission,
    parts: {
      sandboxes,
      runners: all,
      clock,
      ledger,
      blobs: ledger.blobs,
      gateway,
      budgets: { trial: {}, batch: undefined },
      admission,
      random,
      attempts: 3,
      patienceMs,
    },
    async [Symbol.asyncDispose]() {
      engines[Symbol.dispose]();
      await sandboxes[Symbol.asyncDispose]();
    },
  };
}
