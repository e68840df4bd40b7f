import type { z } from 'zod';
import type { OperationName, operations, ResponseOf } from '../../contract/operations.ts';
import { readBaselines } from './baseline.ts';
import type { Call, Change, JsonPieces, Steps } from './call.ts';
import { listCases } from './cases.ts';
import { claimTrial } from './claim-trial.ts';
import { getPrompt, promotePrompt, writePrompt } from './prompts.ts';
import { reportTrial } from './report-trial.ts';
import { rerunCell } from './rerun-cell.ts';
import { listRuns } from './runs-list.ts';
import { startBatch } from './start.ts';

type Request<Name extends OperationName> = z.output<(typeof operations)[Name]['request']>;

type Handler<Name extends OperationName> =
  | { writes: false; answer: (call: Call, request: Request<Name>) => ResponseOf<Name> | JsonPieces }
  | {
      writes: true;
      /** Does everything that needs no transaction, so that the transaction is short. */
      prepare: (call: Call, request: Request<Name>) => Steps<Change<ResponseOf<Name>>>;
    };

const reads = <Name extends OperationName>(
  answer: (call: Call, request: Request<Name>) => ResponseOf<Name> | JsonPieces,
): Handler<Name> => ({ writes: false, answer });

/** For a change that takes no time to prepare. */
const writes = <Name extends OperationName>(
  write: (call: Call, request: Request<Name>) => ResponseOf<Name>,
): Handler<Name> => ({
  writes: true,
  *prepare(call, request) {
    return { change: () => write(call, request) };
  },
});

/** Answers each operation of the contract; throws an `ApiError` to refuse. */
export const handlers: { readonly [Name in OperationName]: Handler<Name> } = {
  'auth.whoami': reads(({ principal: { credential, organization, permissions } }) => ({
    credential,
    organization,
    permissions: [...permissions],
  })),
  'evals.start': { writes: true, prepare: startBatch },
  'evals.runs.list': reads(listRuns),
  'evals.rerunCell': { writes: true, prepare: rerunCell },
  'evals.reportTrial': { writes: true, prepare: reportTrial },
  'evals.claimTrial': writes(claimTrial),
  'evals.cases.list': reads(listCases),
  'evals.baseline': reads(readBaselines),
  'connectors.integrations': reads(({ integrations }) => [...integrations]),
  'prompts.get': reads(getPrompt),
  'prompts.promote': writes(promotePrompt),
  'prompts.write': writes(writePrompt),
};
