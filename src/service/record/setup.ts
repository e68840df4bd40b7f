import type { Case, Suite } from '../../contract/definition.ts';
import type { Setup } from '../../contract/record.ts';
import { expandVariables } from '../../suite/variables.ts';

/**
 * The setup of a case's trials, as run records carry it: every text with the case's variables filled in.
 * Unknown names stay.
 */
export function setupOf(suite: Suite, { prepare, source, verify, validator, variables = {} }: Case): Setup {
  const expand = (text: string) => expandVariables(text, variables, 'keep');
  return {
    prompt: expand(suite.prompt),
    ...(prepare && { prepare: expand(prepare.source) }),
    ...(source && { source }),
    ...(verify !== undefined && { verify: expand(verify) }),
    ...(validator && {
      validator: expand(validator.source),
      validatorFiles: validator.sourceFiles?.map(({ path, content }) => ({ path, content: expand(content) })),
    }),
  };
}

/**
 * An upper bound for the number of characters that `setupOf` produces for the case, without producing them: a
 * few megabytes of `{{name}}` can expand to terabytes.
 */
export function setupSizeBound(suite: Suite, { prepare, verify, validator, variables = {} }: Case): number {
  const texts = [suite.prompt, prepare?.source, verify, validator?.source].concat(
    validator?.sourceFiles?.map(({ content }) => content),
  );
  const longest = Object.values(variables).reduce<number>(
    (most, value) => Math.max(most, lengthOf(value)),
    0,
  );
  return texts
    .map((text = '') => text.length + (text.split('{{').length - 1) * longest)
    .reduce((sum, length) => sum + length, 0);
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0);
}
