import type { z } from 'zod';
import type { OperationName, operations, ResponseOf } from '../../contract/operations.ts';
import type { Call, JsonPieces } from './call.ts';
import { listCases, readBaseline } from './cases.ts';
import { claimTrial } from './claim-trial.ts';
import { getPrompt, promotePrompt, writePrompt } from './prompts.ts';
import { reportTrial } from './report-trial.ts';
import { rerunCell } from './rerun-cell.ts';
import { listRuns } from './runs-list.ts';
import { startBatch } from './start.ts';

type Answer<Name extends OperationName> = (
  call: Call,
  request: z.output<(typeof operations)[Name]['request']>,
) => ResponseOf<Name> | JsonPieces;

interface Handler<Name extends OperationName> {
  /** Whether it runs in a transaction and is answered after the commit is on disk. */
  writes: boolean;
  answer: Answer<Name>;
}

const reads = <Name extends OperationName>(answer: Answer<Name>): Handler<Name> => ({
  writes: false,
  answer,
});
const writes = <Name extends OperationName>(answer: Answer<Name>): Handler<Name> => ({
  writes: true,
  answer,
});

/** Answers each operation of the contract; throws an `ApiError` to refuse. All handlers are synchronous. */
export const handlers: { readonly [Name in OperationName]: Handler<Name> } = {
  'auth.whoami': reads(({ principal: { credential, organization, permissions } }) => ({
    credential,
    organization,
    permissions: [...permissions],
  })),
  'evals.start': writes(startBatch),
  'evals.runs.list': reads(listRuns),
  'evals.rerunCell': writes(rerunCell),
  'evals.reportTrial': writes(reportTrial),
  'evals.claimTrial': writes(claimTrial),
  'evals.cases.list': reads(listCases),
  'evals.baseline': reads(readBaseline),
  'connectors.integrations': reads(({ integrations }) => [...integrations]),
  'prompts.get': reads(getPrompt),
  'prompts.promote': writes(promotePrompt),
  'prompts.write': writes(writePrompt),
};
