import type { Validation } from '../contract/validation.ts';

export interface MatchedValidations {
  /** In the manifest's order; what it does not name comes after. */
  found: Validation[];
  /** Names the manifest has and the validator has not. */
  missing: string[];
}

/** Gives each validation its index: the manifest's for its name, else the next free one. */
export function matchManifest(
  validations: readonly Omit<Validation, 'id' | 'index'>[],
  manifest: readonly { index: number; name: string }[],
): MatchedValidations {
  const declared = new Map(manifest.map(({ index, name }) => [name, index]));
  let next = Math.max(-1, ...declared.values()) + 1;
  const found = validations.map((validation) => {
    const index = declared.get(validation.name) ?? next++;
    // A name's second validation, as test reports have them, is an extra one.
    declared.delete(validation.name);
    return { id: `validation-${index}`, index, ...validation };
  });
  const names = new Set(validations.map(({ name }) => name));
  return {
    found: found.toSorted((a, b) => a.index - b.index),
    missing: manifest.filter(({ name }) => !names.has(name)).map(({ name }) => name),
  };
}
