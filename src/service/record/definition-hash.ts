import { createHash } from 'node:crypto';
import { canonicalJson, canonicalPieces } from '../../base/canonical-json.ts';
import { type Case, type Variant, wholeCase } from '../../contract/definition.ts';

/** Characters of a piece after which others may be served. */
const longPiece = 8 * 1024;

/** The hash of a case for one variant. */
export type DefinitionHash = (variant: Variant | undefined) => string;

/**
 * The hash of a prompt, a case and a variant, as canonical JSON. A missing field counts as its default, so a
 * request that leaves it out has the same hash as one that writes it down. Prompt and case are hashed once
 * for all variants, because they can be long.
 */
export function definitionHash(prompt: string, started: Case): DefinitionHash {
  for (const steps = definitionHashInSteps(prompt, started); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same, with places at which others may be served. */
export function* definitionHashInSteps(prompt: string, started: Case): Generator<void, DefinitionHash> {
  const hash = createHash('sha256').update('{"case":');
  for (const piece of canonicalPieces(wholeCase(started))) {
    hash.update(piece);
    if (piece.length > longPiece) yield;
  }
  hash.update(`,"prompt":${JSON.stringify(prompt)},"variant":`);
  return (variant) =>
    hash
      .copy()
      .update(`${canonicalJson(variant)}}`)
      .digest('hex');
}
