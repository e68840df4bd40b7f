import { type Budget, defaultUsd, type ModelConfig } from './model-config.ts';

export interface Budgets {
  trial: Budget;
  judges?: Budget | undefined;
  batch: Budget;
}

/** Limits budgets in USD that the file does not limit, if a model has prices. */
export function withDefaultBudgets(
  { trial, judges, batch }: Budgets,
  models: Readonly<Record<string, ModelConfig>>,
): Budgets {
  const isPriced = Object.values(models).some((model) => !('scripted' in model) && model.prices);
  const limited = ({ usd, ...budget }: Budget, preset: number): Budget => {
    if (usd === Number.POSITIVE_INFINITY) return budget;
    if (usd !== undefined) return { usd, ...budget };
    return isPriced ? { usd: preset, usdIsDefault: true, ...budget } : budget;
  };
  return {
    trial: limited(trial, defaultUsd.trial),
    ...(judges && { judges: limited(judges, defaultUsd.trial) }),
    batch: limited(batch, defaultUsd.batch),
  };
}

/** What to print about limits that nobody set; undefined if there are none. */
export function defaultBudgetsText({ trial, batch }: Budgets): string | undefined {
  const limits = [
    ...(trial.usdIsDefault ? [`${trial.usd} USD for the models of a trial (budgets.trial.usd)`] : []),
    ...(batch.usdIsDefault ? [`${batch.usd} USD for those of a batch (budgets.batch.usd)`] : []),
  ];
  if (limits.length === 0) return undefined;
  return `limited by default: ${limits.join(' and ')}; set these in offsite.yaml, or \`unlimited\``;
}
