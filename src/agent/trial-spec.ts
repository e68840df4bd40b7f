import { receiving } from '../contract/receiving.ts';
import { type RunRecord, Setup } from '../contract/record.ts';
import { OffsiteError } from '../offsite-error.ts';
import { freshVerify, memoryOf, type PlannedCase, type PlannedVariant } from '../suite/plan.ts';
import { expandVariables } from '../suite/variables.ts';
import type { TrialSpec } from '../trial/spec.ts';

const ReceivedSetup = receiving(Setup);

export interface OwnRun {
  record: Pick<RunRecord, 'id' | 'setup'>;
  taskIndex: number;
  case: PlannedCase;
  variant: PlannedVariant;
  /** The suite's prompt as it was sent. */
  prompt: string;
  batchId: string;
  /** Models that validators may ask. */
  judges: string[];
}

/**
 * What to do in a trial of a run that this agent started: the texts of the pulled `setup`, and from our own
 * request what a run record has no place for. A text that comes back as it was sent is not expanded yet; any
 * other has been.
 */
export function ownTrialSpec(run: OwnRun, ordinal: number): TrialSpec {
  const { record, variant } = run;
  const { request } = run.case;
  const setup = readSetup(record);
  refuseSource(setup.source?.kind ?? 'empty');
  const { variables, manifest, capture, artifacts, user, ...memory } = memoryOf(run.case);
  const expanded = (pulled: string | undefined | null, sent: string | undefined) =>
    pulled === undefined || pulled === null || pulled === ''
      ? undefined
      : pulled === sent
        ? expandVariables(pulled, variables, 'keep')
        : pulled;
  const validator = expanded(setup.validator, request.validator?.source);
  return {
    batchId: run.batchId,
    runId: record.id,
    ordinal,
    caseName: request.name,
    taskIndex: run.taskIndex,
    prompt: expanded(setup.prompt, run.prompt) ?? '',
    prepare: expanded(setup.prepare, request.prepare?.source),
    verify: expanded(setup.verify, request.verify),
    // A plan that an older Offsite stored has none.
    verifyPlace: memory.verifyPlace ?? freshVerify,
    validator:
      validator === undefined
        ? undefined
        : {
            source: validator,
            files: setup.validatorFiles ?? [],
            manifest,
            capture,
            runsIn: memory.runsIn,
            onError: memory.onError,
          },
    variables,
    artifacts,
    protected: memory.protected,
    user:
      user === undefined || variant.userModel === undefined
        ? undefined
        : {
            goal: expandVariables(user.goal, variables, 'keep'),
            prompt: expandVariables(user.prompt, variables, 'keep'),
            model: variant.userModel,
            turns: memory.userTurns,
          },
    judges: run.judges,
    model: variant.model,
    modelConfig: variant.modelConfig,
    harness: variant.harness,
    profile: variant.profile,
    sandbox: variant.sandbox,
  };
}

/**
 * Throws `SETUP_MISSING`, and `SETUP_UNREADABLE` for one that is not as documented: the client takes them as
 * they come.
 */
function readSetup({ id, setup }: OwnRun['record']): Setup {
  if (!setup) {
    throw new OffsiteError(`the service gave run ${id} no setup, so that there is nothing to run`, {
      code: 'SETUP_MISSING',
      kind: 'infrastructure',
    });
  }
  const read = ReceivedSetup.safeParse(setup);
  if (read.success) return read.data;
  const issues = read.error.issues.map(({ path, message }) => `${path.join('.') || 'all of it'}: ${message}`);
  throw new OffsiteError(`the setup of run ${id} is not as documented: ${issues.join('; ')}`, {
    code: 'SETUP_UNREADABLE',
    kind: 'infrastructure',
    cause: read.error,
  });
}

function refuseSource(kind: string): void {
  if (kind === 'empty') return;
  throw new OffsiteError(`a case's source of kind "${kind}" is not implemented; only "empty" is`, {
    code: 'SOURCE_UNKNOWN',
    kind: 'input',
  });
}
