import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Context } from '../api/context.ts';
import type { Engine } from '../engine/engine.ts';
import { type ModelConfig, whereOf } from '../suite/model-config.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { type Printable, text } from '../text/printable.ts';
import { passedEnvironment } from '../trial/host-environment.ts';
import { statesOf } from './check-spec.ts';
import { isUndecided, namesText } from './checked-state.ts';
import { KeptChecks } from './kept-checks.ts';

/** What earlier checks with the same variables, certificates and judges found. */
export async function keptChecks(
  context: Context,
  plan: SuitePlan,
  { engine, again, signal }: { engine: Engine; again: boolean; signal: AbortSignal },
): Promise<KeptChecks> {
  const { dataFolder, redactor, config, host, clock } = context;
  const { sandbox } = plan.variants[0] ?? {};
  if (!sandbox) throw new Error('a suite has at least one variant');
  const judges = plan.judges.map((name) => [config.models[name], hashOfAnswers(config.models[name])]);
  return new KeptChecks(dataFolder, {
    ...{ redactor, again, now: clock.now() },
    settings: [passedEnvironment(sandbox, host), await context.certificates(), judges],
    imageId: async (name) => (await engine.findImage(name, signal))?.id,
  });
}

/** The hash of the file that a model answers from. With a changed file, the judge is another one. */
function hashOfAnswers(model: ModelConfig | undefined): string | undefined {
  if (!model || 'baseUrl' in model) return undefined;
  return hash('sha256', readFileSync(whereOf(model)));
}

/** What to say before a run of cases that the last check of the same cases called not sound. */
export async function unsoundText(
  context: Context,
  plan: SuitePlan,
  given: { engine: Engine; signal: AbortSignal },
): Promise<Printable | undefined> {
  if (!existsSync(join(context.dataFolder, 'checks'))) return undefined;
  const kept = await keptChecks(context, plan, { ...given, again: false });
  const unsound: string[] = [];
  for (const planned of plan.cases) {
    const found = statesOf(plan, planned).map(async (state) => kept.find(await kept.keyOf(state, 1)));
    const states = (await Promise.all(found)).filter((state) => state !== undefined);
    if (states.some((state) => !state.asExpected && !isUndecided(state))) unsound.push(planned.request.id);
  }
  if (unsound.length === 0) return undefined;
  return text`the last check called these cases not sound: ${namesText(unsound)}; \`offsite check\` says why`;
}
