import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { StartRequest } from '../../src/contract/definition.ts';
import { inTransaction, openDatabase } from '../../src/ledger/database.ts';
import type { Call, Change, Steps } from '../../src/service/operations/call.ts';
import { listRuns } from '../../src/service/operations/handlers.ts';
import { startBatch } from '../../src/service/operations/start.ts';
import { migrations } from '../../src/service/store/migrations.ts';
import { createStores } from '../../src/service/store/stores.ts';

/** A service.db whose operations are called without HTTP. */
export interface StoredRuns extends Disposable {
  database: DatabaseSync;
  call: Call;
}

/** @param watch is called before any statement is prepared */
export function openStoredRuns(
  folder: string,
  watch: (database: DatabaseSync) => void = () => undefined,
  key = 'a-key-for-tests',
): StoredRuns {
  const database = openDatabase(join(folder, 'service.db'), migrations);
  watch(database);
  const now = 1_750_000_000_000;
  const stores = createStores(database, () => now);
  stores.keys.seed(key, { organization: 'Local', permissions: ['evals:read', 'evals:write'] });
  const principal = stores.keys.find(key);
  if (!principal) throw new Error('the key that was just seeded is not there');
  const call = { stores, principal, inProgress: new Set<string>(), integrations: [], now };
  return { database, call, [Symbol.dispose]: () => database.close() };
}

/** Starts batches of 20 runs of the case `csv` until there are `count`. Returns the runs' identifiers. */
export function storeRuns({ database, call }: StoredRuns, count: number): string[] {
  return inTransaction(database, () => {
    const ids: string[] = [];
    while (ids.length < count)
      ids.push(...written(startBatch(call, startOf(['csv'], 20))).runs.map(({ id }) => id));
    return ids;
  });
}

/** Takes all steps of a request that writes, and writes it. */
export function written<Response>(steps: Steps<Change<Response>>): Response {
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    for (const part of step.value.before ?? []) part();
    return step.value.change();
  }
}

/** A request to start these cases on so many variants. */
export function startOf(cases: string[], variants: number): StartRequest {
  return {
    suite: { id: 'parsers', name: 'Parsers', prompt: 'Mend the parser.' },
    cases: cases.map((id) => ({ id, name: id })),
    variants: Array.from({ length: variants }, (_, index) => ({ model: `model-${index}` })),
    trials: 1,
    local: true,
  };
}

/** Reads a whole page of the case `csv`; returns its runs' identifiers. */
export function readPage({ call }: StoredRuns, page: number, variant?: string): string[] {
  const { pieces } = listRuns(call, { caseId: 'csv', page, variant });
  const text = Buffer.concat([...pieces].map((piece) => Buffer.from((piece as string) ?? ''))).toString();
  return (JSON.parse(text) as { runs: { id: string }[] }).runs.map(({ id }) => id);
}
