import type { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';
import {
  type Baseline,
  type BaselineRequest,
  baselineLimits,
  type CasesRequest,
  defaultChannel,
  type PromoteRequest,
  type PromoteResponse,
  type Prompt,
  type PromptRequest,
  type WritePromptRequest,
} from '../../contract/catalog.ts';
import { limits } from '../../contract/definition.ts';
import { restoredTag } from '../../contract/errors.ts';
import type {
  ClaimRequest,
  ClaimResponse,
  OperationName,
  operations,
  ResponseOf,
} from '../../contract/operations.ts';
import type { RunsRequest, RunsResponse } from '../../contract/record.ts';
import { usualConfidence, wilsonInterval } from '../../stats/pass-rate.ts';
import { type ApiError, refuse } from '../json-response.ts';
import { distributionOf } from '../record/costs.ts';
import { isoTime, runRecordPieces, versionsOf } from '../record/run-record.ts';
import type { BaselineCell } from '../store/platform-runs.ts';
import { lastRead, type Run } from '../store/runs.ts';
import type { ListedCase } from '../store/stores.ts';
import { holds, type Lease } from '../store/trials.ts';
import type { Call, JsonPieces, Reply } from './call.ts';
import { readMarks } from './evidence.ts';
import { reportTrial, requireLocalTrial } from './report-trial.ts';
import { rerunCell, startBatch } from './start.ts';

type Request<Name extends OperationName> = z.output<(typeof operations)[Name]['request']>;

type Handlers = {
  readonly [Name in OperationName]: (call: Call, request: Request<Name>) => Reply<ResponseOf<Name>>;
};

/** Answers each operation of the contract; throws an `ApiError` to refuse. */
export const handlers: Handlers = {
  'auth.whoami': ({ principal: { credential, organization, permissions } }) => ({
    response: { credential, organization, permissions: [...permissions] },
  }),
  'evals.start': startBatch,
  'evals.runs.list': listRuns,
  'evals.rerunCell': rerunCell,
  'evals.reportTrial': reportTrial,
  'evals.claimTrial': (call, request) => ({ change: () => claimTrial(call, request) }),
  'evals.evidence': (call, request) => ({ response: readMarks(call, request) }),
  'evals.cases.list': listCases,
  'evals.baseline': readBaselines,
  'connectors.integrations': ({ integrations }) => ({ response: [...integrations] }),
  'prompts.get': (call, request) => ({ response: getPrompt(call, request) }),
  'prompts.promote': (call, request) => ({ change: () => promotePrompt(call, request) }),
  'prompts.write': (call, request) => ({ change: () => writePrompt(call, request) }),
};

/** A page of a case's runs, newest first. It is empty if nothing was started for the case. */
export function listRuns(
  { stores, principal, now, inProgress }: Call,
  { caseId, variant, ...request }: RunsRequest,
): JsonPieces {
  const { runs, trials } = stores;
  const page = Math.max(1, request.page ?? 1);
  const limit = limits.runsPerPage;
  const list = { caseId, variant, offset: (page - 1) * limit, limit };
  const { total, keys } = runs.page(principal.organizationKey, list);
  const head: Omit<RunsResponse, 'runs'> = { page, pageSize: limit, total };
  // The runs of a page are often of one batch.
  const { suite, case: definition } = runs.definitions;
  const definitions = { suite: lastRead(suite), case: lastRead(definition) };
  return { pieces: pieces() };

  function* pieces() {
    yield `${JSON.stringify(head).slice(0, -1)},"runs":[`;
    for (const [position, key] of keys.entries()) {
      if (position > 0) yield ',';
      yield* runRecordPieces(runs.read(key), { trials, definitions, now, inProgress });
    }
    yield ']}';
  }
}

/**
 * Grants an agent a lease on a trial, or renews it. While a lease holds, only its agent gets another one.
 * Times are by the service's clock. A 409 with `Retry-After` means that the trial cannot be claimed now;
 * without it, the trial can never be claimed again.
 */
export function claimTrial(
  { stores, principal, now }: Call,
  { id, ordinal, agent, seconds, attempt }: ClaimRequest,
): ClaimResponse {
  const run = stores.runs.find(principal.organizationKey, id);
  if (!run) throw refuse(404, `There is no run ${id}.`);
  requireLocalTrial(run, ordinal);
  if (stores.trials.summaries(run.key).has(ordinal)) throw refuse(409, `Trial ${ordinal} has ended.`);
  const newest = stores.trials.lease(run.key, ordinal);
  // A later number than the newest here was granted after the backup that took the service's place.
  const isOwn = newest?.agent === agent && (attempt === undefined || attempt >= newest.attempt);
  if (newest && !isOwn) refuseClaimed(newest, attempt, now);
  if (attempt === undefined) refuseRestored(stores.copies.servedAt(run.key), now);
  const lease: Lease = {
    agent,
    attempt: newest && attempt === newest.attempt ? attempt : (newest?.attempt ?? 0) + 1,
    expiresAt: now + seconds * 1000,
  };
  stores.trials.putLease(run.key, ordinal, lease);
  return { attempt: lease.attempt, expiresAt: new Date(lease.expiresAt).toISOString() };
}

/** Throws if somebody else's lease holds, and if a renewal comes too late because there is a newer lease. */
function refuseClaimed({ agent, expiresAt, attempt }: Lease, renewed: number | undefined, now: number): void {
  const until = new Date(expiresAt).toISOString();
  if (holds(expiresAt, now)) {
    throw refusal(
      `The agent ${JSON.stringify(agent)} has claimed the trial until ${until}.`,
      expiresAt - now,
    );
  }
  if (renewed === undefined) return;
  throw refusal(`Lease ${renewed} of the trial has ended: lease ${attempt} was granted since.`, 0);
}

/**
 * Throws for some time after a backup took the service's place. What it lacks may have ended at agents that
 * report it again: if others claimed it first, it would run twice. Their renewals pass, and the tag tells
 * agents that nobody else gets the trial: what they run without a lease goes on.
 */
function refuseRestored(servedAt: number | undefined, now: number): void {
  if (servedAt === undefined || servedAt > now) return;
  const until = servedAt + serviceRequests.time.restored;
  if (until <= now) return;
  const message =
    'The service was restored from a backup: until ' +
    `${new Date(until).toISOString()}, agents report again what it has lost of this run.`;
  throw refusal(message, until - now, restoredTag);
}

function refusal(message: string, waitMs: number, tag?: typeof restoredTag): ApiError {
  return refuse(409, message, { 'retry-after': String(Math.ceil(waitMs / 1000)) }, tag);
}

function listCases({ stores, principal }: Call, { suite }: CasesRequest): JsonPieces {
  return { pieces: pieces() };

  function* pieces() {
    yield '{"cases":[';
    let last: ListedCase | undefined;
    for (;;) {
      const cases = stores.cases.list(principal.organizationKey, suite, last);
      if (cases.length === 0) break;
      yield `${last ? ',' : ''}${cases.map(({ entry }) => entry).join(',')}`;
      last = cases.at(-1);
      yield undefined;
    }
    yield ']}';
  }
}

/**
 * A given version, or the one that a channel points to: the default channel if none is named. As long as a
 * prompt has no channel, nobody has decided anything, and its newest version counts.
 */
function getPrompt(
  { stores, principal }: Call,
  { id, version, channel }: z.output<typeof PromptRequest>,
): Prompt {
  const organization = principal.organizationKey;
  const channels = stores.prompts.channels(organization, id);
  const pointing = channel ?? (version === undefined && channels.size > 0 ? defaultChannel : undefined);
  const wanted = pointing === undefined ? version : channels.get(pointing);
  const prompt =
    pointing !== undefined && wanted === undefined
      ? undefined
      : stores.prompts.find(organization, id, wanted);
  if (prompt) return prompt;
  if (version !== undefined) throw refuse(404, noVersion(id, version));
  if (pointing === undefined) throw refuse(404, `The prompt ${id} does not exist.`);
  const named = [...channels.keys()].slice(0, 20).join(', ');
  throw refuse(404, `The prompt ${id} has no channel ${pointing}. Its channels: ${named || 'none'}.`);
}

function writePrompt(
  { stores, principal, now }: Call,
  { id, content }: z.output<typeof WritePromptRequest>,
): Prompt {
  return stores.prompts.append(principal.organizationKey, id, content, now);
}

function promotePrompt(
  { stores, principal }: Call,
  { id, channel, version }: z.output<typeof PromoteRequest>,
): z.output<typeof PromoteResponse> {
  const organization = principal.organizationKey;
  if (!stores.prompts.has(organization, id, version)) throw refuse(404, noVersion(id, version));
  const channels = stores.prompts.channels(organization, id);
  if (!channels.has(channel) && channels.size >= serviceRequests.count.channels)
    throw refuse(409, `The prompt ${id} has ${channels.size} channels. Point one of them at the version.`);
  stores.prompts.point(organization, id, channel, version);
  return { id, channel, version };
}

function noVersion(id: string, version: number): string {
  return `The prompt ${id} does not exist or has no version ${version}.`;
}

/**
 * The baselines of a case, one for each suite and variant. A baseline is made of the newest platform runs of
 * the cell's newest definition and profile, because other definitions ask or check something else, and with
 * another profile it is another agent. Reported trials enter it only if the owner says so, and their evidence
 * was graded again here.
 */
function readBaselines(call: Call, { caseId, suite, variant }: z.output<typeof BaselineRequest>): JsonPieces {
  const cells = call.stores.baselines.cells(call.principal.organizationKey, { caseId, suiteId: suite });
  const ofId = cells.filter((cell) => variant === undefined || cell.variant.id === variant);
  const named = ofId.length > 0 ? ofId : cells.filter((cell) => cell.variant.model === variant);
  const answered = named.slice(0, baselineLimits.cells);
  return { pieces: pieces() };

  function* pieces() {
    yield '{"baselines":[';
    for (const [index, cell] of answered.entries()) {
      yield `${index > 0 ? ',' : ''}${JSON.stringify(baselineOf(call, cell))}`;
      yield undefined;
    }
    yield `],"more":${named.length - answered.length}}`;
  }
}

function baselineOf({ stores, principal }: Call, { newest, ...cell }: BaselineCell): Baseline {
  const { baselines, trials } = stores;
  const organization = principal.organizationKey;
  const newestRuns = baselines.runs(organization, { newest, ...cell }, baselineLimits.runs);
  const runs = ofOneProfile(newestRuns.map((run) => ({ ...run, ...versionsOf(trials.facts(run.key)) })));
  const counts = baselines.counts(organization, { newest, ...cell });
  const ended = runs.map((run) => countedOf(run, trials));
  const planned = runs.reduce((sum, run, at) => sum + (run.local ? (ended[at]?.length ?? 0) : run.trials), 0);
  const distribution = distributionOf(planned, ended.flat());
  const { passed, scored } = distribution;
  return {
    ...cell,
    distribution,
    ...(scored > 0 && {
      passRateInterval: { ...wilsonInterval(passed, scored), confidence: usualConfidence },
    }),
    runs: runs.map((run, index) => runOf(run, ended[index] ?? [])),
    notCounted: {
      sameDefinition: counts.sameDefinition - newestRuns.length,
      otherProfiles: newestRuns.length - runs.length,
      otherDefinitions: counts.all - counts.sameDefinition,
    },
  };
}

/** The ended trials of a run that count: of a reported one, those whose evidence was graded again here. */
function countedOf({ key, local }: Run, trials: Call['stores']['trials']) {
  const summaries = trials.summaries(key);
  if (!local) return [...summaries.values()];
  const marks = trials.marks(key);
  return [...summaries].flatMap(([ordinal, one]) => (marks.get(ordinal)?.level === 'regraded' ? [one] : []));
}

type VersionedRun = Run & Pick<Baseline['runs'][number], 'harnessVersion' | 'profileVersion'>;

/** The runs with the newest known profile, and those whose trials ended before they named a profile. */
function ofOneProfile(runs: readonly VersionedRun[]): VersionedRun[] {
  const newest = runs.find(({ profileVersion }) => profileVersion !== undefined)?.profileVersion;
  return runs.filter(({ profileVersion }) => profileVersion === undefined || profileVersion === newest);
}

function runOf(run: VersionedRun, summaries: { verdict: string }[]): Baseline['runs'][number] {
  const { id, batchId, harnessVersion, profileVersion } = run;
  const count = (verdict: string) => summaries.filter((one) => one.verdict === verdict).length;
  return {
    id,
    batchId,
    harnessVersion,
    profileVersion,
    startedAt: isoTime(run.startedAt),
    passed: count('passed'),
    failed: count('failed'),
    voided: count('void'),
  };
}
