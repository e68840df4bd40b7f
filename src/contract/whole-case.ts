import type { Case } from './definition.ts';

/**
 * The case with the defaults of its missing fields. A part without a default (a user, a script) stays
 * missing.
 */
export function wholeCase({ validator, ...request }: Case): Case {
  return {
    source: { kind: 'empty' },
    tags: [],
    variables: {},
    ...request,
    ...(validator && { validator: { capture: true, manifest: [], sourceFiles: [], ...validator } }),
  };
}
