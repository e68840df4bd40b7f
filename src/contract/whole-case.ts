import type { Case } from './definition.ts';

/** The case with what its missing fields mean. What it does not have (a user, a script) stays missing. */
export function wholeCase({ validator, ...request }: Case): Case {
  return {
    source: { kind: 'empty' },
    tags: [],
    variables: {},
    ...request,
    ...(validator && { validator: { capture: true, manifest: [], sourceFiles: [], ...validator } }),
  };
}
