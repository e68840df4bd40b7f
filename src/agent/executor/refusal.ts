import { inputError, OffsiteError } from '../../base/offsite-error.ts';
import type { Variant } from '../../contract/definition.ts';
import type { RunVariant } from '../../contract/record.ts';
import type { Runner } from '../../harness/runner.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformService } from '../../ledger/platform.ts';
import type { PlatformRefusal, PlatformRequest } from '../../service/platform.ts';
import type { Config } from '../../suite/config-file.ts';
import { noExtras, type PlannedVariant, type SuitePlan } from '../../suite/plan.ts';
import { findModel, type HarnessOffer, needsModel } from '../../suite/planned-variant.ts';
import { type HostEnvironment, passedEnvironment, refuseKeys } from '../../trial/prepare/environment.ts';
import { checkModels } from '../../trial/run/models.ts';
import { openBatch } from '../batch-run.ts';
import type { ConfigRevisions } from '../config-revision.ts';
import { checkOnEngines, type SomeEngines } from '../engines/check.ts';
import { knownVariant, noUserModel, ownName } from '../specify.ts';

/** What trials run on. */
export interface Workplace extends SomeEngines {
  revisions: ConfigRevisions;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
}

export interface PlatformRefusalContext {
  config: Config;
  runners: readonly Runner[];
  ledger: Ledger;
  host: HostEnvironment;
  /** Throws an OffsiteError if trials cannot run here, for example because there is no engine. */
  open(): Promise<Workplace>;
}

/** Why the trials of a platform batch cannot run here; undefined if they can. */
export async function refusalOf(
  request: PlatformRequest,
  parts: PlatformRefusalContext,
  signal: AbortSignal,
): Promise<PlatformRefusal | undefined> {
  const plan = request.rerunOf === undefined ? undefined : planOf(request.rerunOf, parts.ledger);
  const unknown = plan ? [] : unknownNames(request.variants, parts);
  if (unknown.length > 0) return { status: 404, message: sentences(unknown) };
  try {
    const { suite, cases } = request;
    refuseKeys({ suite, cases }, parts.host);
    await requireMachine(plan ?? (await requestedParts(request, parts)), await parts.open(), signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    return {
      status: 409,
      message: sentences([error.message, ...(error.hint === undefined ? [] : [error.hint])]),
    };
  }
}

/** The plan of a batch that `offsite service start` kept in this ledger. */
function planOf(batchId: string, ledger: Ledger): Planned | undefined {
  const batch = ledger.batches.find(batchId).find(({ service }) => service === platformService);
  return batch?.plan === undefined ? undefined : openBatch(batch, ledger).plan;
}

type Planned = Pick<SuitePlan, 'variants' | 'judges' | 'cases'>;

/** What the configuration has for a request. Throws an OffsiteError if something does not fit. */
function requestedParts(
  { cases, variants }: PlatformRequest,
  { config, runners }: PlatformRefusalContext,
): Planned {
  for (const { id, user, source } of cases) {
    if (user) throw noUserModel(id);
    if (source && source.kind !== 'empty') throw sourceUnknown(id, source.kind);
  }
  return {
    variants: variants.map((variant, index) => requestedVariant(variant, index, config, runners)),
    judges: config.daemon.judges,
    cases: cases.map((request) => ({ request, local: noExtras })),
  };
}

function requestedVariant(
  variant: Variant,
  index: number,
  config: Config,
  runners: readonly Runner[],
): PlannedVariant {
  const known = knownVariant(namesOf(variant), config, runners);
  if (typeof known !== 'string') return known;
  throw inputError('VARIANT_UNUSABLE', `variants[${index}]: ${known}`);
}

/** A requested variant as a run record names it. */
export function namesOf({ model, credentials }: Variant): RunVariant {
  return {
    id: '',
    model,
    harness: credentials?.harnessConnectionId,
    sandbox: credentials?.sandboxConnectionId,
  };
}

/** Throws an OffsiteError if engine, environment or models lack something. */
async function requireMachine(
  { variants, judges, cases }: Planned,
  workplace: Workplace,
  signal: AbortSignal,
): Promise<void> {
  const { current } = workplace.revisions;
  for (const { sandbox } of variants) passedEnvironment(sandbox, current.host);
  await checkModels({ variants, judges }, current);
  await checkOnEngines(workplace, { variants, cases }, signal);
}

function sourceUnknown(caseId: string, kind: string): OffsiteError {
  return inputError(
    'SOURCE_UNKNOWN',
    `the case ${caseId} has a source of kind ${JSON.stringify(kind)}; only empty is implemented`,
  );
}

/** One text for people who see only the message. */
function sentences(parts: readonly string[]): string {
  return `This batch cannot run here: ${parts.map((part) => part.replace(/\.$/, '')).join('. ')}.`;
}

/**
 * The names in requested variants that the configuration does not have, one sentence for each: what is
 * unknown, what is known, and where to add it.
 */
function unknownNames(
  variants: readonly Variant[],
  { config, runners }: { config: Config; runners: readonly HarnessOffer[] },
): string[] {
  return variants.flatMap((variant, index) => unknownIn(variant, `variants[${index}]`, config, runners));
}

function unknownIn(
  { model, credentials }: Variant,
  at: string,
  config: Config,
  runners: readonly HarnessOffer[],
): string[] {
  if (!credentials) {
    return [
      `${at} names no connections: credentials.harnessConnectionId and credentials.sandboxConnectionId`,
    ];
  }
  const { connections } = config;
  const harnessId = credentials.harnessConnectionId;
  const sandboxId = credentials.sandboxConnectionId;
  const harness = runners.find(({ name }) => name === ownName(harnessId, connections.harness));
  const sandbox = ownName(sandboxId, connections.sandbox);
  const file = config.file ?? 'offsite.yaml';
  const problems: string[] = [];
  const report = (what: string, id: string, known: readonly string[], where: string) => {
    const names = known.length > 0 ? `known are ${known.join(', ')}` : 'none is known';
    problems.push(`${at}: the ${what} ${JSON.stringify(id)} is unknown here (${names}); ${where}`);
  };
  if (!harness) {
    const known = runners.map(({ name }) => connections.harness[name] ?? name);
    report(
      'harness connection',
      harnessId,
      known,
      `name another, or add it to connections.harness in ${file}`,
    );
  }
  if (sandbox !== 'local' && !config.sandboxes[sandbox]) {
    const names = [...new Set(['local', ...Object.keys(config.sandboxes)])];
    const known = names.map((name) => connections.sandbox[name] ?? name);
    report('sandbox connection', sandboxId, known, `add it to sandboxes or connections.sandbox in ${file}`);
  }
  if (harness && needsModel(model, harness) && !findModel(model, config))
    report('model', model, Object.keys(config.models), `add it to models in ${file}`);
  return problems;
}
