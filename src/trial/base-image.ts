import { assertEnforceable } from '../engine/capabilities.ts';
import type { Engine } from '../engine/engine.ts';
import type { Image } from '../engine/port/images.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { Sandbox } from '../suite/plan.ts';
import { containerSpec, engineNetwork } from './container-spec.ts';

/**
 * The image that a sandbox names. Throws `IMAGE_MISSING` where the engine does not have it; nothing is
 * pulled. One round trip.
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
        : `Get it: docker pull ${sandbox.image}; Offsite runs what the engine has and pulls nothing by itself.`,
    },
  );
}

/** Throws where this engine cannot run one of the sandboxes at all, so that nothing is started in vain. */
export async function checkSandboxes(
  engine: Engine,
  sandboxes: readonly Sandbox[],
  signal: AbortSignal,
): Promise<void> {
  for (const sandbox of new Map(sandboxes.map((sandbox) => [sandbox.name, sandbox])).values()) {
    const { id } = await baseImage(engine, sandbox, signal);
    assertEnforceable(
      { ...containerSpec(sandbox, { network: engineNetwork(sandbox), labels: {} }), imageId: id },
      engine.capabilities,
    );
  }
}
