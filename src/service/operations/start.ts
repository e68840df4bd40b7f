import type { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';
import type { RerunRequest, RerunResponse } from '../../contract/catalog.ts';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { refuse, refuseBody } from '../json-response.ts';
import { definitionHashInSteps, oversizedSetups, requestedVariant, runVariants } from '../record/setup.ts';
import type { CellName, NewBatch, Run } from '../store/runs.ts';
import type { Call, Change, Steps } from './call.ts';

/**
 * Queues every case on every variant. Runs have the order of the cases, and within a case the order of the
 * variants. Many runs are written in parts; then one change puts all of them into the lists.
 */
export function* startBatch(call: Call, request: StartRequest): Steps<Change<StartResponse>> {
  checkCaseIds(request.cases);
  const oversized = yield* oversizedSetups(request);
  if (oversized.length > 0) throw refuseBody(oversized);
  const { stores, principal, now } = call;
  const { variants } = request;
  const cases: HashedCase[] = [];
  for (const started of request.cases) {
    yield;
    const definition = JSON.stringify(started);
    // Each hash reads the whole prompt.
    yield;
    const hash = yield* definitionHashInSteps(request.suite.prompt, started);
    cases.push({ case: started, definition, hash: (variantIndex) => hash(variants[variantIndex]) });
  }
  const batch = stores.runs.begin(principal.organizationKey, request, runVariants(variants), now);
  const parts = inParts(cases, variants.length).map((part) => () => batch.add(part));
  const isLong = parts.length > 1;
  return {
    batch: request.local ? undefined : request,
    ...(isLong && { before: parts }),
    change() {
      if (!isLong) for (const add of parts) add();
      const { id, runs } = batch.list();
      return {
        id,
        runs: runs.map(({ id, case: of, variantIndex }) => ({ id, caseId: of.id, variantIndex })),
      };
    },
  };
}

type HashedCase = Parameters<NewBatch['add']>[0][number];

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
  const { stores, principal, now } = call;
  const { runs } = stores;
  const { batch, batchCase, variant, local } = cellOf(call, request);
  const trials = request.trials ?? runs.trialsOf(batch);
  const change = () => {
    const { id } = runs.rerun(principal.organizationKey, cellOf(call, request), trials, now);
    return { id };
  };
  if (local) return { change };
  yield;
  const [suite, started] = [runs.definitions.suite(batch), runs.definitions.case(batchCase)];
  const variants = [requestedVariant(variant)];
  return { batch: { suite, cases: [started], variants, trials, rerunOf: request.id }, change };
}

function cellOf({ stores, principal }: Call, { id, cellKey }: Request): Run {
  // A variant's id has no colon; a case's may.
  const caseId = cellKey.slice(0, Math.max(0, cellKey.lastIndexOf(':')));
  const name = { batchId: id, caseId, variantId: cellKey.slice(caseId.length + 1) };
  const run = caseId === '' ? undefined : stores.runs.ofCell(principal.organizationKey, name);
  if (run) return run;
  throw refuse(404, whyNoCell(stores.runs.cells(principal.organizationKey, id), name));
}

/** Which part of a cell's name is wrong, and what it could be. */
function whyNoCell(
  cells: readonly Omit<CellName, 'batchId'>[],
  { batchId, caseId, variantId }: CellName,
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
