import { canonicalJson, sha256 } from '../../base/canonical-json.ts';
import type { Variant } from '../../contract/definition.ts';
import type { RunVariant } from '../../contract/record.ts';

/**
 * The variants as run records carry them. The same model, harness and sandbox have the same id in every
 * batch. If a request names a variant again, its id gets `-2`, `-3` and so on, so that cells stay separate.
 * Fields that a request cannot have (profile, user model) are left out.
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

/** The variant of a run as a request names it. */
export function requestedVariant({ model, harness, sandbox }: RunVariant): Variant {
  if (harness === undefined || sandbox === undefined) return { model };
  return { model, credentials: { harnessConnectionId: harness, sandboxConnectionId: sandbox } };
}
