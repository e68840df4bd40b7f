import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import { type Case, type Variant, wholeCase } from '../../contract/definition.ts';

/** The hash of a case for one variant. */
export type DefinitionHash = (variant: Variant | undefined) => string;

/**
 * The hash of a prompt, a case and a variant, as canonical JSON. A missing field counts as its default, so a
 * request that leaves it out has the same hash as one that writes it down. Prompt and case are hashed once
 * for all variants, because they can be long.
 */
export function definitionHash(prompt: string, started: Case): DefinitionHash {
  const beginning = `{"case":${canonicalJson(wholeCase(started))},"prompt":${JSON.stringify(prompt)},"variant":`;
  const hash = createHash('sha256').update(beginning);
  return (variant) =>
    hash
      .copy()
      .update(`${canonicalJson(variant)}}`)
      .digest('hex');
}
