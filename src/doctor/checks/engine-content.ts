import { baseImageName, baseImageRecipe } from '../../base-image/recipe.ts';
import { assertEnforceable } from '../../engine/capabilities.ts';
import { engineSpace } from '../../engine/container/disk-space.ts';
import { isDead } from '../../engine/liveness-marker.ts';
import { ownedContainers } from '../../engine/owned-objects.ts';
import { exceeds, mostSnapshots } from '../../engine/snapshot/eviction.ts';
import { listedSnapshots, snapshotRepository } from '../../engine/snapshot/kept-snapshots.ts';
import { plural } from '../../text/quantities.ts';
import { containerSpec, defaultContext, engineNetwork } from '../../trial/container-spec.ts';
import { byteSize, engineCheck, type Finding } from '../check.ts';
import { attempt, failureOf } from '../examine.ts';

/** Bytes for the base image, some snapshots, and what running trials write. */
const roomyBytes = 5 * 1024 ** 3;

/** Free space where the engine keeps images and containers. */
export const engineDisk = engineCheck("engine's disk", async ({ address, capabilities }) => {
  const { rootFolder } = capabilities;
  const space = await engineSpace({ address, capabilities });
  if (space === undefined) {
    return {
      state: 'skipped',
      found: `${rootFolder || 'its folder'} is not on this machine, or not visible, so no reserve is kept there`,
    };
  }
  const { freeBytes, reserveBytes } = space;
  const found = `${rootFolder}, ${byteSize(freeBytes)} free, of which ${byteSize(reserveBytes)} stay in reserve`;
  if (freeBytes < roomyBytes)
    return {
      state: 'warn',
      found,
      fix: 'Free some space: `offsite engine images prune`, `docker system df`.',
    };
  return { state: 'ok', found };
});

const dayMs = 24 * 60 * 60_000;
/** Days after which the image's packages should be renewed. */
const oldDays = 60;

export const baseImage = engineCheck('base image', async (engine, { clock, signal }) => {
  const name = baseImageName(baseImageRecipe);
  const image = await engine.findImage(name, signal);
  if (image === undefined) {
    const older = await engine.findImage(`${baseImageRecipe.repository}:${baseImageRecipe.tag}`, signal);
    const found = older ? `${name} is missing; there is one of another version` : `${name} is missing`;
    return { state: 'fail', kind: 'infrastructure', found, fix: 'Make it: offsite engine base-image' };
  }
  const days = Math.floor((clock.now() - image.madeAt) / dayMs);
  const found = `${name}, made ${days < 1 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`}`;
  if (days <= oldDays) return { state: 'ok', found };
  return { state: 'warn', found, fix: 'Renew its packages: offsite engine base-image --force' };
});

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

/** How many snapshots are kept: they take disk space, and each makes a listing of images slower. */
export const snapshots = engineCheck('snapshots', async ({ port }, { config, signal }) => {
  const listed = await listedSnapshots(port, snapshotRepository, signal);
  const bytes = listed.reduce((sum, snapshot) => sum + snapshot.bytes, 0);
  const { budget } = config.snapshots;
  const found =
    `${plural(listed.length, 'snapshot')} of ${byteSize(bytes)}; ` +
    `at most ${mostSnapshots} of ${byteSize(budget)} are kept`;
  if (!exceeds(listed, { budgetBytes: budget, most: mostSnapshots })) return { state: 'ok', found };
  const fix =
    'The next run that makes one removes those not used for the longest time. To do it now: offsite engine images prune';
  return { state: 'warn', found, fix };
});

/**
 * Containers of Offsite processes that were killed. The next run removes them, so the user need not do
 * anything.
 */
export const leftovers = engineCheck('leftovers', async ({ port }, { clock, signal }) => {
  const containers = await ownedContainers(port, signal);
  const instances = [...Map.groupBy(containers, ({ instance }) => instance).values()];
  const dead = instances.filter((objects) => isDead(objects, clock.now()));
  if (dead.length === 0) {
    return {
      state: 'ok',
      found: `no containers of processes that were killed; Offsite processes on this engine: ${instances.length}`,
    };
  }
  const found = `${plural(dead.flat().length, 'container')} of Offsite processes that were killed`;
  return { state: 'warn', found, fix: 'The next run removes them. To remove them now: offsite engine clean' };
});
