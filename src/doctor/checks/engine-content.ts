import { baseImageName, baseImageRecipe } from '../../base-image/recipe.ts';
import { assertEnforceable } from '../../engine/capabilities.ts';
import { engineSpace } from '../../engine/container/disk-space.ts';
import { type Capabilities, otherPlainRuntime, plainRuntimes } from '../../engine/port/engine-port.ts';
import { exceeds, mostSnapshots } from '../../engine/snapshot/eviction.ts';
import { listedSnapshots, snapshotRepository } from '../../engine/snapshot/kept-snapshots.ts';
import type { Config } from '../../suite/config-file.ts';
import { duration, plural } from '../../text/quantities.ts';
import { containerSpec, defaultContext, engineNetwork } from '../../trial/prepare/environment.ts';
import {
  attempt,
  byteSize,
  type Check,
  engineCheck,
  type Finding,
  fail,
  failureOf,
  ok,
  skipped,
  warn,
} from '../examine.ts';

/** What sandboxes of one runtime have in common. */
export interface SandboxRuntime {
  /** As a sandbox names it; undefined for the engine's default. */
  runtime: string | undefined;
  /** Whether a configured sandbox of it may lack Offsite's filter of system calls. */
  mayLackFilter: boolean;
}

export interface UsedRuntime extends SandboxRuntime {
  /** Its name, also of the engine's default. */
  name: string;
}

/** The runtimes that sandboxes use on an engine with this default, which comes first if it is one of them. */
export function usedRuntimes(
  configured: Record<string, Pick<Config['sandboxes'][string], 'runtime' | 'seccomp'>>,
  defaultRuntime: string,
): UsedRuntime[] {
  // There is a sandbox `local` without an entry.
  const sandboxes = Object.values({ local: { runtime: undefined, seccomp: 'required' }, ...configured });
  const names = new Set(sandboxes.map(({ runtime = defaultRuntime }) => runtime));
  return [...names]
    .sort((one, other) => Number(other === defaultRuntime) - Number(one === defaultRuntime))
    .map((name) => ({
      name,
      runtime: name === defaultRuntime ? undefined : name,
      mayLackFilter: sandboxes.some(
        ({ runtime = defaultRuntime, seccomp }) => runtime === name && seccomp === 'if-available',
      ),
    }));
}

/** Bytes for the base image, some snapshots, and what running trials write. */
const roomyBytes = 5 * 1024 ** 3;

/** Free space where the engine keeps images and containers. */
export const engineDisk = engineCheck("engine's disk", async ({ address, capabilities }) => {
  const { rootFolder } = capabilities;
  const space = await engineSpace({ address, capabilities });
  if (space === undefined)
    return skipped(
      `${rootFolder || 'its folder'} is not on this machine, or not visible, so no reserve is kept there`,
    );
  const { freeBytes, reserveBytes } = space;
  const found = `${rootFolder}, ${byteSize(freeBytes)} free, of which ${byteSize(reserveBytes)} stay in reserve`;
  if (freeBytes >= roomyBytes) return ok(found);
  return warn(found, 'Free some space: `offsite engine images prune`, `docker system df`.');
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
    return fail(found, 'Make it: offsite engine base-image');
  }
  const days = Math.floor((clock.now() - image.madeAt) / dayMs);
  const found = `${name}, made ${days < 1 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`}`;
  return days <= oldDays ? ok(found) : warn(found, 'Renew its packages: offsite engine base-image --force');
});

/** Whether the engine has the images of the configured sandboxes, and can enforce their limits. */
export const sandboxes = engineCheck('sandboxes', async (engine, { config, signal }) => {
  const names = Object.keys(config.sandboxes);
  let missing: Finding | undefined;
  for (const [name, settings] of Object.entries(config.sandboxes)) {
    const sandbox = { name, ...settings };
    const image = await engine.findImage(sandbox.image, signal);
    if (image === undefined)
      missing ??= warn(
        `"${name}" names the image ${sandbox.image}, which the engine does not have`,
        `Get it before running in that sandbox: docker pull ${sandbox.image}`,
      );
    const spec = containerSpec(sandbox, defaultContext, { network: engineNetwork(sandbox), labels: {} });
    const held = await attempt(() =>
      assertEnforceable({ ...spec, imageId: image?.id ?? sandbox.image }, engine.capabilities, name),
    );
    if (!held.got) return failureOf(held.error);
  }
  return (
    missing ?? ok(names.length === 0 ? 'only the default' : `the engine can run all: ${names.join(', ')}`)
  );
});

/** How many snapshots are kept: they take disk space, and each makes a listing of images slower. */
export const snapshots = engineCheck('snapshots', async ({ port }, { config, signal }) => {
  const listed = await listedSnapshots(port, snapshotRepository, signal);
  const bytes = listed.reduce((sum, snapshot) => sum + snapshot.bytes, 0);
  const { budget } = config.snapshots;
  const found =
    `${plural(listed.length, 'snapshot')} of ${byteSize(bytes)}; ` +
    `at most ${mostSnapshots} of ${byteSize(budget)} are kept`;
  if (!exceeds(listed, { budgetBytes: budget, most: mostSnapshots })) return ok(found);
  return warn(
    found,
    'The next run that makes one removes those not used for the longest time. To do it now: offsite engine images prune',
  );
});

/** Whether the engine can be reached and is new enough: connecting refuses an old engine. */
export const engineReachable: Check = {
  name: 'engine',
  ofEngine: true,
  async run({ engine }) {
    if (!engine.got) return failureOf(engine.error);
    const { address, capabilities } = engine.value;
    const { serverVersion, apiVersion, os } = capabilities;
    const found = `${address}, version ${serverVersion}, API ${apiVersion}`;
    if (os === 'linux') return ok(found);
    const fix = 'Switch it to Linux containers, or name another engine by DOCKER_HOST.';
    return fail(`${found}: it runs ${os} containers`, fix);
  },
};

/** The runtime of sandboxes that name none, and what follows from it. */
export const engineRuntime = engineCheck('runtime', async ({ capabilities }, { config }) => {
  const { defaultRuntime, runtimes } = capabilities;
  if (!plainRuntimes.includes(defaultRuntime)) {
    const used = usedRuntimes(config.sandboxes, defaultRuntime).find(({ runtime }) => runtime === undefined);
    if (used === undefined) return ok(`${defaultRuntime}, which no sandbox uses`);
    const found = `${defaultRuntime}, which may not apply the filter of system calls: runc and crun do`;
    // Another check says what such sandboxes lack.
    if (used.mayLackFilter) return ok(found);
    return warn(found, `Sandboxes need ${waysOut(capabilities)}. docs/engines.md says what else follows.`);
  }
  if (defaultRuntime === 'crun' || !runtimes.includes('crun')) return ok(defaultRuntime);
  // Measured with Docker 20.10, runc 1.1.5 and crun 1.8.1: docs/engines.md.
  const found = `${defaultRuntime}; crun is there too, and makes a trial a tenth to a fifth faster`;
  return ok(`${found}: "default-runtime": "crun" in the engine's daemon.json`);
});

function waysOut(capabilities: Capabilities): string {
  const plain = otherPlainRuntime(capabilities);
  const otherRuntime = plain === undefined ? '' : `runtime: ${plain}, which the engine has too, or `;
  return `${otherRuntime}seccomp: if-available`;
}

const usual =
  'Enable control groups (for swap: kernel option swapaccount=1) and seccomp, or use another engine.';
const ofRootless =
  'A rootless engine has limits where the machine has control groups of version 2, and systemd delegates cpu, ' +
  'memory and pids to users (https://rootlesscontaine.rs/getting-started/common/cgroup2/). Or use another engine.';

/** The limits that the engine says it can enforce. Without one of these, sandboxes are refused. */
export const engineLimits = engineCheck('limits', async ({ capabilities: { limits, security } }) => {
  const all = {
    memory: limits.memory,
    swap: limits.swap,
    processes: limits.pids,
    processors: limits.cpu,
    'system calls (seccomp)': security.seccomp,
  };
  const missing = Object.entries(all).flatMap(([name, isThere]) => (isThere ? [] : [name]));
  if (missing.length === 0) return ok(Object.keys(all).join(', '));
  return fail(`the engine cannot limit ${missing.join(', ')}`, security.rootless ? ofRootless : usual);
});

/**
 * Milliseconds. The times of commands come from the engine's clock, all others from ours. A difference below
 * one second does not matter.
 */
const tolerated = 1_000;

export const engineClock = engineCheck("engine's clock", async ({ capabilities: { clockAheadMs } }) => {
  const apart = Math.abs(clockAheadMs);
  const found = `${duration(apart)} ${clockAheadMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (apart <= tolerated) return ok(found);
  return warn(
    found,
    'Set both clocks by NTP, else the times of commands are wrong. A machine that slept is often behind.',
  );
});
