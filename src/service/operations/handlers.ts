import type { z } from 'zod';
import type { OperationName, operations, ResponseOf } from '../../contract/operations.ts';
import type { PlatformRequest } from '../platform.ts';
import { readBaselines } from './baseline.ts';
import type { Call, JsonPieces } from './call.ts';
import { listCases } from './cases.ts';
import { claimTrial } from './claim-trial.ts';
import { getPrompt, promotePrompt, writePrompt } from './prompts.ts';
import { reportTrial } from './report-trial.ts';
import { rerunCell, rerunOnPlatform } from './rerun-cell.ts';
import { listRuns } from './runs-list.ts';
import { startBatch, startedOnPlatform } from './start.ts';

type Request<Name extends OperationName> = z.output<(typeof operations)[Name]['request']>;

type Answer<Name extends OperationName> = (
  call: Call,
  request: Request<Name>,
) => ResponseOf<Name> | JsonPieces;

interface Handler<Name extends OperationName> {
  /** Whether it runs in a transaction and is answered after the commit is on disk. */
  writes: boolean;
  /**
   * The batch that the platform itself is to run, if the request is for one. The platform is asked about it
   * first. Throws an `ApiError` if the request would be refused anyway.
   */
  forPlatform?: (call: Call, request: Request<Name>) => PlatformRequest | undefined;
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

/** Answers each operation of the contract; throws an `ApiError` to refuse. All of these are synchronous. */
export const handlers: { readonly [Name in OperationName]: Handler<Name> } = {
  'auth.whoami': reads(({ principal: { credential, organization, permissions } }) => ({
    credential,
    organization,
    permissions: [...permissions],
  })),
  'evals.start': { ...writes(startBatch), forPlatform: startedOnPlatform },
  'evals.runs.list': reads(listRuns),
  'evals.rerunCell': { ...writes(rerunCell), forPlatform: rerunOnPlatform },
  'evals.reportTrial': writes(reportTrial),
  'evals.claimTrial': writes(claimTrial),
  'evals.cases.list': reads(listCases),
  'evals.baseline': reads(readBaselines),
  'connectors.integrations': reads(({ integrations }) => [...integrations]),
  'prompts.get': reads(getPrompt),
  'prompts.promote': writes(promotePrompt),
  'prompts.write': writes(writePrompt),
};
