import { z } from 'zod';
import {
  BaselineRequest,
  BaselineResponse,
  CasesRequest,
  CasesResponse,
  Integration,
  PromoteRequest,
  PromoteResponse,
  Prompt,
  PromptRequest,
  RerunRequest,
  RerunResponse,
  WritePromptRequest,
} from './catalog.ts';
import {
  Count,
  DateTime,
  Identifier,
  type Permission,
  StartRequest,
  StartResponse,
  Whoami,
} from './definition.ts';
import type { ErrorStatus } from './errors.ts';
import { RunsRequest, RunsResponse } from './record.ts';
import { EvidenceRequest, EvidenceResponse, evidenceTypes, ReportRequest } from './report.ts';

/** Schemas of a lease on one trial, which `evals.claimTrial` grants. */

export const claimLimits = { seconds: 3600 } as const;

export const ClaimRequest = z.strictObject({
  id: Identifier.meta({ description: 'The run.' }),
  ordinal: Count,
  agent: Identifier.max(200).meta({ description: 'Who claims the trial. Each agent has an id of its own.' }),
  seconds: z.int().min(0).max(claimLimits.seconds).meta({
    description: 'How long the lease holds. 0 gives the trial back at once.',
  }),
  attempt: z.int().min(1).optional().meta({
    description:
      'The number of a lease that this agent has, to renew it. Without it, a new lease is asked for.',
  }),
});
export type ClaimRequest = z.infer<typeof ClaimRequest>;

export const ClaimResponse = z.strictObject({
  attempt: z.int().meta({
    description: "The lease's number. It grows with each new lease of the trial; a renewal keeps it.",
  }),
  expiresAt: DateTime,
});
export type ClaimResponse = z.infer<typeof ClaimResponse>;

interface Operation<Request extends z.ZodType, Response extends z.ZodType> {
  summary: string;
  /**
   * The permission that the key needs. Undefined if any active key is accepted. This is our choice, because
   * the specification does not say it.
   */
  permission: Permission | undefined;
  request: Request;
  response: Response;
  /** Whether a request may come without a body. It counts as an empty object. */
  bodyOptional?: boolean;
  /**
   * The error statuses that this service can answer, in addition to 401 and 500, which any operation can.
   * Another service may answer others.
   */
  errors: readonly ErrorStatus[];
  /**
   * Whether repeating the request has no further effect, so that a client may repeat it after an unknown
   * outcome.
   */
  repeatable: boolean;
  /** Whether this operation is an addition that the specification does not have. */
  ours?: boolean;
  /** A file that may come as the body instead of the request: its media types, and what sending it needs. */
  file?: { types: readonly string[]; permission: Permission };
}

function operation<Request extends z.ZodType, Response extends z.ZodType>(
  parts: Operation<Request, Response>,
) {
  return parts;
}

/** All operations. The client, the service and the documentation are made from this one table. */
export const operations = {
  'auth.whoami': operation({
    summary: 'Shows which organization a credential uses.',
    permission: undefined,
    request: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]),
    response: Whoami,
    bodyOptional: true,
    errors: [400],
    repeatable: true,
  }),
  'evals.start': operation({
    summary: 'Runs every case of a suite on every variant, each as many times as `trials`.',
    permission: 'evals:write',
    request: StartRequest,
    response: StartResponse,
    errors: [400, 403, 404, 409],
    repeatable: false,
  }),
  'evals.runs.list': operation({
    summary: "Lists a case's runs, newest first, 20 to a page.",
    permission: 'evals:read',
    request: RunsRequest,
    response: RunsResponse,
    errors: [400, 403],
    repeatable: true,
  }),
  'evals.rerunCell': operation({
    summary: 'Reruns one cell of a batch: queues a new run of the same case on the same variant.',
    permission: 'evals:write',
    request: RerunRequest,
    response: RerunResponse,
    errors: [400, 403, 404, 409],
    repeatable: false,
  }),
  'evals.reportTrial': operation({
    summary:
      'Reports a trial that ran outside the platform. It is marked as reported and kept out of baselines.',
    permission: 'evals:write',
    request: ReportRequest,
    response: z.strictObject({}),
    errors: [400, 403, 404, 409],
    repeatable: true,
  }),
  'evals.claimTrial': operation({
    summary:
      'Claims a queued trial for one agent for some seconds, renews the claim, or gives the trial back.',
    permission: 'evals:write',
    request: ClaimRequest,
    response: ClaimResponse,
    errors: [400, 401, 403, 404, 409],
    repeatable: true,
    ours: true,
  }),
  'evals.evidence': operation({
    summary:
      'Says how far the evidence of the reported trials of a run holds. With evidence as the body, as ' +
      '`offsite export --evidence` writes it: audits it, and marks the trials that it bears out.',
    permission: 'evals:read',
    request: EvidenceRequest,
    file: { types: evidenceTypes, permission: 'evals:write' },
    response: EvidenceResponse,
    errors: [400, 403, 404, 409],
    repeatable: true,
    ours: true,
  }),
  'evals.cases.list': operation({
    summary: 'Lists the cases that runs were started for.',
    permission: 'evals:read',
    request: CasesRequest,
    response: CasesResponse,
    errors: [400, 403],
    repeatable: true,
  }),
  'evals.baseline': operation({
    summary: "Reads a case's baselines, one for each variant. They are made only from platform trials.",
    permission: 'evals:read',
    request: BaselineRequest,
    response: BaselineResponse,
    errors: [400, 403],
    repeatable: true,
    ours: true,
  }),
  'connectors.integrations': operation({
    summary: 'Lists the integrations that can be connected, with the auth methods each accepts.',
    permission: 'credentials:read',
    request: z.strictObject({}),
    response: z.array(Integration),
    errors: [400, 403],
    repeatable: true,
  }),
  'prompts.get': operation({
    summary:
      'Reads a prompt: the version that its default channel, or another one, points to, or a given one.',
    permission: 'prompts:read',
    request: PromptRequest,
    response: Prompt,
    errors: [400, 403, 404],
    repeatable: true,
  }),
  'prompts.promote': operation({
    summary: 'Points a channel at a version.',
    permission: 'channels:write',
    request: PromoteRequest,
    response: PromoteResponse,
    errors: [400, 403, 404, 409],
    repeatable: true,
  }),
  'prompts.write': operation({
    summary: 'Appends a version to a prompt, which callers receive once a channel points to it.',
    permission: 'prompts:write',
    request: WritePromptRequest,
    response: Prompt,
    errors: [400, 403],
    repeatable: false,
    ours: true,
  }),
} as const;

export type OperationName = keyof typeof operations;
export type RequestOf<Name extends OperationName> = z.input<(typeof operations)[Name]['request']>;
export type ResponseOf<Name extends OperationName> = z.output<(typeof operations)[Name]['response']>;
