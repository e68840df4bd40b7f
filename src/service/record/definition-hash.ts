import { createHash } from 'node:crypto';
import type { Case, Variant } from '../../contract/definition.ts';
import { canonicalJson } from '../canonical-json.ts';

/**
 * The hash of a prompt, a case and a variant, as canonical JSON. The first two are hashed once for all variants,
 * because they can be long.
 */
export function definitionHash(prompt: string, started: Case): (variant: Variant | undefined) => string {
  const beginning = `{"case":${canonicalJson(started)},"prompt":${JSON.stringify(prompt)},"variant":`;
  const hash = createHash('sha256').update(beginning);
  return (variant) =>
    hash
      .copy()
      .update(`${canonicalJson(variant)}}`)
      .digest('hex');
}
