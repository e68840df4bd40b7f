import { limits } from '../../contract/definition.ts';
import type { RunsRequest, RunsResponse } from '../../contract/record.ts';
import { runRecordPieces } from '../record/run-record.ts';
import { lastRead } from '../store/runs.ts';
import type { Call, JsonPieces } from './call.ts';

/** A page of a case's runs, newest first. It is empty if nothing was started for the case. */
export function listRuns(
  { stores, principal, now, inProgress }: Call,
  { caseId, variant, ...request }: RunsRequest,
): JsonPieces {
  const page = Math.max(1, request.page ?? 1);
  const pageSize = limits.runsPerPage;
  const { total, keys } = stores.runs.page(principal.organizationKey, {
    caseId,
    variant,
    offset: (page - 1) * pageSize,
    limit: pageSize,
  });
  const head: Omit<RunsResponse, 'runs'> = { page, pageSize, total };
  // The runs of a page are often of one batch.
  const { suite, case: definition } = stores.runs.definitions;
  const definitions = { suite: lastRead(suite), case: lastRead(definition) };
  return { pieces: pieces() };

  function* pieces() {
    yield `${JSON.stringify(head).slice(0, -1)},"runs":[`;
    for (const [position, key] of keys.entries()) {
      if (position > 0) yield ',';
      yield* runRecordPieces(stores.runs.read(key), { stores, definitions, now, inProgress });
    }
    yield ']}';
  }
}
