import type { Variant } from '../../contract/definition.ts';
import type { RunVariant } from '../../contract/record.ts';
import { canonicalJson, sha256 } from '../canonical-json.ts';

/**
 * The variants as run records carry them. An id is the same for the same model, harness and sandbox in every
 * batch; a variant that a request names again gets `-2`, `-3` and so on appended, so that cells stay apart.
 * What a request cannot say (profile, user model) is left out.
 */
export function runVariants(variants: Variant[]): RunVariant[] {
  const seen = new Map<string, number>();
  return variants.map(({ model, credentials }) => {
    const named = {
      model,
      ...(credentials && {
        harness: credentials.harnessConnectionId,
        sandbox: credentials.sandboxConnectionId,
      }),
    };
    const id = `v_${sha256(canonicalJson(named)).toString('hex').slice(0, 10)}`;
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    return { id: times === 1 ? id : `${id}-${times}`, ...named };
  });
}
