import { assertEnforceable } from '../engine/capabilities.ts';
import type { Engine } from '../engine/engine.ts';
import type { Image } from '../engine/port/images.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { CaseExtras, Sandbox } from '../suite/plan.ts';
import { containerSpec, engineNetwork, usualPlace } from './container-spec.ts';

/**
 * The image that a sandbox names, found in one round trip. Throws `IMAGE_MISSING` if the engine does not have
 * it. Pulls nothing.
 */
export async function baseImage(engine: Engine, sandbox: Sandbox, signal: AbortSignal): Promise<Image> {
  const found = await engine.findImage(sandbox.image, signal);
  if (found) return found;
  throw new OffsiteError(
    `the engine has no image ${sandbox.image}, which the sandbox "${sandbox.name}" names`,
    {
      code: 'IMAGE_MISSING',
      kind: 'infrastructure',
      hint: /^offsite\/base(:|$)/.test(sandbox.image)
        ? 'Build it: offsite base-image'
        : `Pull it: docker pull ${sandbox.image} (Offsite pulls no images; it uses those of the engine).`,
    },
  );
}

interface CheckedPlan {
  variants: readonly { sandbox: Sandbox }[];
  /** A plan that an older Offsite stored has no environments. */
  cases: readonly { local: Partial<Pick<CaseExtras, 'environment'>> }[];
}

/**
 * Throws if this engine cannot run one of the sandboxes, so that a batch fails before it starts anything.
 * The images that its cases name are looked for later.
 */
export async function checkSandboxes(
  engine: Engine,
  { variants, cases }: CheckedPlan,
  signal: AbortSignal,
): Promise<void> {
  const usesImage = cases.some(({ local: { environment } }) => !environment?.image && !environment?.build);
  for (const sandbox of new Map(variants.map(({ sandbox }) => [sandbox.name, sandbox])).values()) {
    const imageId = usesImage ? (await baseImage(engine, sandbox, signal)).id : '';
    const network = engineNetwork(sandbox);
    const spec = { ...containerSpec(sandbox, usualPlace, { network, labels: {} }), imageId };
    assertEnforceable(spec, engine.capabilities);
  }
}
