import type { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';
import type { RerunRequest, RerunResponse } from '../../contract/catalog.ts';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { refuse, refuseBody } from '../json-response.ts';
import {
  type DefinitionHash,
  definitionHashInSteps,
  oversizedSetups,
  requestedVariant,
  runVariants,
} from '../record/setup.ts';
import type { AddedRun, Cell } from '../store/batches.ts';
import type { Call, Change, Steps } from './call.ts';

/**
 * Queues every case on every variant. Runs have the order of the cases, and within a case the order of the
 * variants. Many runs are written in parts; then one change puts all of them into the lists.
 */
export function* startBatch(call: Call, request: StartRequest): Steps<Change<StartResponse>> {
  checkCaseIds(request.cases);
  const oversized = yield* oversizedSetups(request);
  if (oversized.length > 0) throw refuseBody(oversized);
  const cases: HashedCase[] = [];
  for (const started of request.cases) {
    yield;
    const definition = JSON.stringify(started);
    // Each hash reads the whole prompt.
    yield;
    const hash = yield* definitionHashInSteps(request.suite.prompt, started);
    cases.push({ started, definition, hash });
  }
  const batch = addBatch(call, request);
  const parts = inParts(cases, request.variants.length).map((part) => () => batch.add(part));
  const isLong = parts.length > 1;
  return {
    batch: request.local ? undefined : request,
    ...(isLong && { before: parts }),
    change() {
      if (!isLong) for (const add of parts) add();
      return batch.list();
    },
  };
}

interface HashedCase {
  started: Case;
  /** JSON. */
  definition: string;
  hash: DefinitionHash;
}

/** Cases that are written in one step. */
function inParts(cases: readonly HashedCase[], variants: number): HashedCase[][] {
  const parts: HashedCase[][] = [];
  let room = { runs: 0, characters: 0 };
  for (const one of cases) {
    const { runs, characters } = room;
    if (runs < variants || characters < one.definition.length) {
      parts.push([]);
      room = { runs: serviceRequests.count.runs, characters: serviceRequests.bytes.written };
    }
    room.runs -= variants;
    room.characters -= one.definition.length;
    parts.at(-1)?.push(one);
  }
  return parts;
}

/** Writes a batch: its cases with their runs, and at last the lists from which they are read. */
function addBatch({ stores, principal, now }: Call, request: StartRequest) {
  const { suite, trials, local = false, trigger } = request;
  const variants = runVariants(request.variants);
  const organization = principal.organizationKey;
  let batch: { key: number; id: string } | undefined;
  const added: (AddedRun & { variantIndex: number })[] = [];
  return {
    add(cases: readonly HashedCase[]): void {
      batch ??= stores.batches.addBatch({ organization, suite, trials, local, trigger, now });
      for (const { started, definition, hash } of cases) {
        const batchCase = stores.batches.addCase(batch, started, definition);
        for (const [variantIndex, variant] of variants.entries()) {
          const run = stores.batches.addRun({
            organization,
            batch,
            batchCase,
            taskIndex: added.length,
            suiteId: suite.id,
            caseId: started.id,
            variant,
            definitionHash: hash(request.variants[variantIndex]),
            local,
            trials,
            now,
          });
          added.push({ ...run, variantIndex });
        }
      }
    },
    list(): StartResponse {
      for (const started of request.cases) stores.batches.listCase(organization, suite, started);
      for (const run of added) stores.batches.listRun(run);
      if (batch) stores.batches.listBatch(batch);
      const runs = added.map(({ id, caseId, variantIndex }) => ({ id, caseId, variantIndex }));
      return { id: batch?.id ?? '', runs };
    },
  };
}

function checkCaseIds(cases: Case[]): void {
  const seen = new Set<string>();
  const issues = cases.flatMap(({ id }, index) => {
    if (!seen.has(id)) {
      seen.add(id);
      return [];
    }
    const message = `another case of this request has the id ${JSON.stringify(id)}`;
    return [{ _tag: 'Refinement' as const, path: ['cases', index, 'id'], message }];
  });
  if (issues.length > 0) throw refuseBody(issues);
}

/** How many ids a refusal names. */
const namedIds = 5;

type Request = z.output<typeof RerunRequest>;

/**
 * Queues a new run of a cell: the same case definition, on the same variant, in the same batch. Without
 * `trials`, it has as many as the batch was started with.
 */
export function* rerunCell(call: Call, request: Request): Steps<Change<z.output<typeof RerunResponse>>> {
  const cell = cellOf(call, request);
  const change = () => addRun(call, request);
  if (cell.local) return { batch: undefined, change };
  yield;
  const batch = {
    suite: cell.suite,
    cases: [cell.case],
    variants: [requestedVariant(cell.variant)],
    trials: request.trials ?? cell.trials,
    rerunOf: request.id,
  };
  return { batch, change };
}

function addRun(call: Call, request: Request): z.output<typeof RerunResponse> {
  const { stores, principal, now } = call;
  const cell = cellOf(call, request);
  const { batch, batchCase, suiteId, variant, definitionHash, local } = cell;
  const run = stores.batches.addRun({
    batch,
    batchCase,
    suiteId,
    variant,
    definitionHash,
    local,
    now,
    organization: principal.organizationKey,
    caseId: caseOf(request),
    taskIndex: cell.nextTaskIndex,
    trials: request.trials ?? cell.trials,
  });
  stores.batches.listRun(run);
  return { id: run.id };
}

function cellOf({ stores, principal }: Call, { id, cellKey }: Request): Cell {
  const caseId = caseOf({ cellKey });
  const names = { batchId: id, caseId, variantId: cellKey.slice(caseId.length + 1) };
  const cell = caseId === '' ? undefined : stores.batches.findCell(principal.organizationKey, names);
  if (cell) return cell;
  throw refuse(404, whyNoCell(stores.batches.cells(principal.organizationKey, id), names));
}

/** Which part of a cell's name is wrong, and what it could be. */
function whyNoCell(
  cells: readonly { caseId: string; variantId: string }[],
  { batchId, caseId, variantId }: { batchId: string; caseId: string; variantId: string },
): string {
  if (cells.length === 0) return `There is no batch ${batchId}.`;
  if (caseId === '') return 'The cell has no case: write <caseId>:<variantId>.';
  const variants = cells.filter((cell) => cell.caseId === caseId).map((cell) => cell.variantId);
  if (variants.length === 0)
    return `The batch ${batchId} has no case ${caseId}; it has ${someOf(cells.map((cell) => cell.caseId))}.`;
  return `The case ${caseId} of the batch ${batchId} has no variant ${variantId}; it has ${someOf(variants)}.`;
}

function someOf(ids: readonly string[]): string {
  const distinct = [...new Set(ids)];
  const rest = distinct.length - namedIds;
  return `${distinct.slice(0, namedIds).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** A variant's id has no colon; a case's may. */
function caseOf({ cellKey }: Pick<Request, 'cellKey'>): string {
  return cellKey.slice(0, Math.max(0, cellKey.lastIndexOf(':')));
}
