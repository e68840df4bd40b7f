import { assertEnforceable } from '../../../engine/capabilities.ts';
import { containerSpec, defaultContext, engineNetwork } from '../../../trial/container-spec.ts';
import { engineCheck, type Finding } from '../check.ts';
import { attempt, failureOf } from '../examine.ts';

/** Whether the engine has the images of the configured sandboxes, and can enforce their limits. */
export const sandboxes = engineCheck('sandboxes', async (engine, { config, signal }) => {
  const names = Object.keys(config.sandboxes);
  let missing: Finding | undefined;
  for (const [name, settings] of Object.entries(config.sandboxes)) {
    const sandbox = { name, ...settings };
    const image = await engine.findImage(sandbox.image, signal);
    if (image === undefined) {
      missing ??= {
        state: 'warn',
        found: `"${name}" names the image ${sandbox.image}, which the engine does not have`,
        fix: `Get it before running in that sandbox: docker pull ${sandbox.image}`,
      };
    }
    const spec = containerSpec(sandbox, defaultContext, { network: engineNetwork(sandbox), labels: {} });
    const held = await attempt(() =>
      assertEnforceable({ ...spec, imageId: image?.id ?? sandbox.image }, engine.capabilities, name),
    );
    if (!held.got) return failureOf(held.error);
  }
  if (missing !== undefined) return missing;
  return {
    state: 'ok',
    found: names.length === 0 ? 'only the default' : `the engine can run all: ${names.join(', ')}`,
  };
});
