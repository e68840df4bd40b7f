import { runners } from '../../runners/index.ts';
import { Admission } from '../../src/agent/admission.ts';
import { Engines } from '../../src/agent/engines/engines.ts';
import type { AttemptParts } from '../../src/agent/finish-trial.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { fixtureCli } from '../trial/fixture-cli.ts';

/** Milliseconds. */
const patience = 600_000;

/** A single engine that fits every trial. */
export function oneEngine(
  engine: Engine,
  {
    clock,
    patienceMs = patience,
    fits = async () => true,
  }: { clock: Clock; patienceMs?: number; fits?: () => Promise<boolean> },
): Engines {
  return new Engines({
    engines: [engine],
    areSeveral: false,
    check: { fits },
    clock,
    random: () => 0,
    patienceMs,
    observe: () => undefined,
  });
}

/** Permits for so many trials at a time. */
export function admissionFor(concurrency: number, clock: Clock): Admission {
  const room = { cpus: 4, memory: 8e9 };
  return new Admission({ clock, concurrency, room, requireRoom: async () => undefined });
}

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
  const sandboxes = new Sandboxes(engine, undefined, { runners: all });
  const engines = oneEngine(engine, { clock });
  const admission = admissionFor(concurrency, clock);
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
      random: () => 0,
      attempts: 3,
      patienceMs: patience,
    },
    async [Symbol.asyncDispose]() {
      engines[Symbol.dispose]();
      await sandboxes[Symbol.asyncDispose]();
    },
  };
}
