import type { Config } from './config-file.ts';
import { BadFile, type FileIssue } from './file-issues.ts';
import { findModel } from './planned-variant.ts';

/**
 * Throws {@link BadFile} if a limit in USD could not hold, because one of these models has no prices. The
 * default limits hold only for models that have prices. Scripted and recorded answers cost nothing.
 */
export function requirePrices(models: readonly string[], config: Config): void {
  const issues = missingPrices(models, config);
  if (issues.length > 0) throw new BadFile(issues);
}

export function missingPrices(models: readonly string[], config: Config): FileIssue[] {
  const { budgets, issue } = config;
  const limit = (['trial', 'judges', 'batch'] as const).find(
    (of) => budgets[of]?.usd !== undefined && !budgets[of].usdIsDefault,
  );
  if (!limit || !issue) return [];
  const unpriced = models.filter((name) => {
    const model = findModel(name, config);
    return model && 'baseUrl' in model && !model.prices;
  });
  return unpriced.map((name) =>
    issue(
      ['budgets', limit, 'usd'],
      `the model ${name} has no prices, so its cost cannot be limited; set its prices, or limit tokens instead`,
    ),
  );
}
