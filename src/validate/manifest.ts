import type { Validation } from '../contract/validation.ts';

export interface MatchedValidations {
  /** In the manifest's order, then validations that the manifest does not name. */
  found: Validation[];
  /** Names in the manifest for which the validator has no validation. */
  missing: string[];
}

/** Gives each validation its index: the manifest's index for its name, otherwise the next free one. */
export function matchManifest(
  validations: readonly Omit<Validation, 'id' | 'index'>[],
  manifest: readonly { index: number; name: string }[],
): MatchedValidations {
  const declared = new Map(manifest.map(({ index, name }) => [name, index]));
  let next = Math.max(-1, ...declared.values()) + 1;
  const found = validations.map((validation) => {
    const index = declared.get(validation.name) ?? next++;
    // Test reports can repeat a name. The second validation of a name counts as an extra one.
    declared.delete(validation.name);
    return { id: `validation-${index}`, index, ...validation };
  });
  const names = new Set(validations.map(({ name }) => name));
  return {
    found: found.toSorted((a, b) => a.index - b.index),
    missing: manifest.filter(({ name }) => !names.has(name)).map(({ name }) => name),
  };
}
