import type { Validation } from '../../contract/validation.ts';
import { type IntegrityFinding, integrityValidation, messageOf } from '../../validate/integrity.ts';
import type { GradingTrouble } from '../../validate/trouble.ts';
import { verdictOf } from '../../validate/verdict.ts';
import { gradingPrevented } from '../control.ts';
import type { Cause, TrialResult } from '../result.ts';
import type { ValidatorSpec } from '../spec.ts';
import { integrityOf } from './integrity.ts';
import type { Phase, PhaseInput } from './phase.ts';
import { runIn, validated } from './validator.ts';

/** Runs the case's validator, looks whether what grading relies on was left alone, and comes to the verdict. */
export const validate: Phase = { name: 'validate', run };

async function run(input: PhaseInput): Promise<Partial<TrialResult>> {
  const { spec, container, signal, found, parts } = input;
  const { validator } = spec;
  // Verify runs what the harness wrote: a process of that must not touch what is graded either.
  if (spec.verify !== undefined) await container.killAll(signal);
  const findings = await integrityOf(input);
  const ran = validator ? await validated(validator, input) : { kind: 'ran' as const, ...nothing };
  const at = parts.clock.now();
  const own = ran.kind === 'ran' ? ran.validations : [];
  const validations = [...own, ...withIndexes(findings, own, at)];
  const judgments = ran.kind === 'ran' ? ran.judgments : [];
  const graded = { validations, judgments };
  const agentCause = (message: string): Cause => found.cause ?? { kind: 'agent', phase: 'validate', message };

  const broken = findings.find(({ changed }) => changed.length > 0);
  if (broken) return { ...graded, verdict: 'failed', cause: agentCause(messageOf(broken)) };
  if (ran.kind === 'refused')
    return { ...graded, verdict: 'failed', cause: agentCause(`the workspace ${ran.why}`) };
  if (validator && ran.trouble) return { ...graded, ...(await troubled(input, validator, ran.trouble)) };
  const verdict = verdictOf({ verifySteps: found.verifySteps ?? [], ...graded });
  if (verdict !== 'void') return { ...graded, verdict };
  const cause: Cause = { kind: 'task', phase: 'validate', message: 'there was nothing to check' };
  return { ...graded, verdict, cause: found.cause ?? cause };
}

const nothing = { validations: [], judgments: [], trouble: undefined };

function withIndexes(
  findings: readonly IntegrityFinding[],
  own: readonly Validation[],
  at: number,
): Validation[] {
  const next = Math.max(-1, ...own.map(({ index }) => index)) + 1;
  return findings.map((finding, position) => integrityValidation(finding, { index: next + position, at }));
}

/** The outcome of a trial whose validator could not do its work. Infrastructure is never the agent's failure, whatever the author marked. */
async function troubled(
  input: PhaseInput,
  validator: ValidatorSpec,
  { kind, ...told }: GradingTrouble,
): Promise<Partial<TrialResult>> {
  const cause: Cause = { kind: 'grading', phase: 'validate', ...told };
  if (kind === 'infrastructure') return { verdict: 'void', cause: { ...cause, kind: 'infrastructure' } };
  if (validator.onError === 'failed') return { verdict: 'failed', cause: input.found.cause ?? cause };
  if (kind === 'broken' || validator.runsIn === 'fresh') return { verdict: 'void', cause };
  return gradingPrevented(input, cause, async (fresh) => {
    const control = await runIn(fresh, validator, input);
    return control.trouble?.kind !== 'not-started';
  });
}
