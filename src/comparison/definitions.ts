import { createHash } from 'node:crypto';
import { type KnownPlan, readPlan } from '../agent/stored-plan.ts';
import { canonicalJson } from '../canonical-json.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import { environmentContent, stepsContent, testsContent } from '../suite/environment-content.ts';
import type { Definition } from './changed-parts.ts';

/** The definitions of a batch's cases, by id. Undefined if the ledger does not have its plan. */
export function definitionsOf(ledger: Ledger, batch: StoredBatch): Record<string, Definition> | undefined {
  const known = knownPlan(ledger, batch);
  if (!known) return undefined;
  const { plan, prompt } = known;
  const definitions = plan.cases.map(({ request, local }) => {
    const { id, name: _, tags: __, prepare, source, verify, validator, user, variables, ...more } = request;
    const { environment, tests, steps, solution: ___, oracle: ____, ...settings } = local;
    const parts: Record<string, unknown> = {
      ...{ prompt, variables, source, prepare, verify, validator, user },
      // Without the places of files, which differ between clones and versions of a suite. A plan that an
      // older Offsite stored has no environments.
      environment: environment && environmentContent(environment),
      tests: tests && testsContent(tests),
      steps: steps && stepsContent(steps),
      settings: { ...more, ...settings },
    };
    const hashes = Object.entries(parts).flatMap(([part, value]): [string, string][] =>
      value === undefined ? [] : [[part, hashOf(value)]],
    );
    return [id, Object.fromEntries(hashes)] as const;
  });
  return Object.fromEntries(definitions);
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);
}

/** The plan of a batch; undefined if the ledger has none, or an Offsite of another version wrote it. */
export function knownPlan({ blobs }: Ledger, { plan: sha256 }: StoredBatch): KnownPlan | undefined {
  const stored = sha256 === undefined ? undefined : blobs.tryRead(sha256);
  if (!stored) return undefined;
  try {
    return readPlan(JSON.parse(stored.toString('utf8')));
  } catch (error) {
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}
