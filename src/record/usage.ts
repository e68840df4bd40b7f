import type { Usage } from '../contract/report.ts';
import type { TrialRecord } from './trial-record.ts';

// Not beside the schemas of the contract: the page reads this, and must not load them.
export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'totalTokens',
  'costUsd',
] as const satisfies readonly (keyof Usage)[];

/**
 * The sum of each number. A number that one of the parts lacks is left out, and so is a sum that JSON cannot
 * express. Without parts, each sum is 0.
 */
export function sumOfUsage(parts: readonly Usage[]): Usage {
  const sums = usageFields.flatMap((field) => {
    const sum = sumIfKnown(parts.map((part) => part[field]));
    return sum === undefined ? [] : [[field, sum]];
  });
  return Object.fromEntries(sums);
}

/** Undefined if one part is not known: the sum of the others is not a count. */
export function sumIfKnown(parts: readonly (number | undefined)[]): number | undefined {
  const sum = parts.reduce<number>((total, part) => total + (part ?? Number.NaN), 0);
  return Number.isFinite(sum) ? sum : undefined;
}

/**
 * The sum of what the agent's models used. A number that is not known for each of them is left out. Without a
 * model it is 0.
 */
export function agentUsage({ usage }: Pick<NonNullable<TrialRecord['models']>, 'usage'>): Usage {
  return sumOfUsage(usage.filter(({ role }) => role === 'agent').map((part) => part.usage));
}

/** The agent's model usage. If the sandbox could reach no model, zero usage is a measurement. */
export function usageOf({
  models,
  modelUnmeasured,
}: Pick<TrialRecord, 'models' | 'modelUnmeasured'>): Usage | undefined {
  return modelUnmeasured ? undefined : agentUsage(models ?? { usage: [] });
}

/** What judges and simulated users cost; undefined if that is not known for each, and 0 without one. */
export function otherCostOf({
  models,
  modelUnmeasured,
}: Pick<TrialRecord, 'models' | 'modelUnmeasured'>): number | undefined {
  // Judges are measured also where the agent's own requests are not.
  if (modelUnmeasured && !models) return undefined;
  const others = (models?.usage ?? []).filter(({ role }) => role !== 'agent');
  return sumIfKnown(others.map(({ usage }) => usage.costUsd));
}

/** The model of the agent, by its name in the configuration; undefined if nothing names it. */
export function modelOf({ subject, models }: Pick<TrialRecord, 'subject' | 'models'>): string | undefined {
  return subject?.model ?? models?.usage.find(({ role }) => role === 'agent')?.model;
}

/**
 * What the agent's models used in a step of a trial. A request that began in the step belongs to it. Without
 * requests it is 0. A request that was refused used nothing.
 */
export function stepUsage(
  { models }: Pick<TrialRecord, 'models'>,
  { startedAt, finishedAt }: { startedAt: number; finishedAt: number },
): Usage {
  const exchanges = models?.exchanges ?? [];
  const own = exchanges.filter(({ role, startedAt: at, status = 200, usage }) => {
    const usedSome = status < 400 || Object.keys(usage).length > 0;
    return role === 'agent' && at >= startedAt && at <= finishedAt && usedSome;
  });
  return sumOfUsage(own.map(({ usage }) => usage));
}

/** The models whose scripts had no turn for a conversation that began, with who asked first. */
export function unscriptedModels({ models }: Pick<TrialRecord, 'models'>) {
  const lost = (models?.exchanges ?? []).filter(({ unscripted }) => unscripted);
  return [...Map.groupBy(lost, ({ model }) => model)].map(([model, [first]]) => ({
    model,
    role: first?.role,
  }));
}

export function unscriptedText({ model }: { model: string }): string {
  return `no turn of the script of ${model} fits what it was asked: \`otherwise\` answered`;
}
