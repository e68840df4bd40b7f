import type { Case, Variant } from '../../contract/definition.ts';
import { canonicalJson, sha256 } from '../canonical-json.ts';

/** The same for the same work: the prompt, the case and the variant as a request has them. */
export function definitionHash(definition: { prompt: string; case: Case; variant: Variant }): string {
  return sha256(canonicalJson(definition)).toString('hex');
}
