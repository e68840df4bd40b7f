import type { EngineFailureKind } from '../port/failure.ts';

/** Podman answers 500 to many requests whose object is in the wrong state, and names the cause. */
const kinds: readonly [cause: RegExp, kind: EngineFailureKind][] = [
  [/^(?:no such|image not known|volume not known|network not found)/, 'not-found'],
  [
    /(?:container|exec session) state improper$|is already in use$|^volume already exists$|(?:is being used|in use by)/,
    'conflict',
  ],
  [/^container has already been removed$/, 'not-found'],
  // A name that no image can have.
  [/^normalizing name .*(?:must be lowercase|invalid reference format)$/, 'not-found'],
];

/** What Podman means by a refusal; undefined if its status says so. */
export function podmanKind(status: number, body: unknown): EngineFailureKind | undefined {
  const { cause } = (body ?? {}) as { cause?: unknown };
  if (status < 500 || typeof cause !== 'string') return undefined;
  return kinds.find(([words]) => words.test(cause))?.[1];
}
