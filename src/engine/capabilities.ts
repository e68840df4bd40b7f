import { inputError } from '../base/offsite-error.ts';
import { type ContainerSpec, isRoot } from './container/container-spec.ts';
import { filterObstacle } from './container/seccomp/filter.ts';
import { ownMachines } from './own-files/volume.ts';
import { type Capabilities, otherPlainRuntime } from './port/engine-port.ts';

/** Something that a sandbox requires and an engine does not have. */
interface Lack {
  what: string;
  /** What to do about it, as a full sentence. */
  remedy?: string;
}

/**
 * Throws an input error that names everything that `spec` requires and this engine cannot provide. Nothing is
 * silently left out.
 *
 * @param name the sandbox's, for the message and for what to write into the configuration
 */
export function assertEnforceable(spec: ContainerSpec, capabilities: Capabilities, name?: string): void {
  const lacks = unmetDemands(spec, capabilities, name);
  if (lacks.length === 0) return;
  const missing = lacks.map(({ what }) => what).join('; ');
  const whose = name === undefined ? 'the sandbox' : `the sandbox "${name}"`;
  const remedies = lacks.flatMap(({ remedy }) => remedy ?? []);
  throw inputError('ENGINE_CANNOT_ENFORCE', `This engine cannot provide what ${whose} requires: ${missing}`, {
    hint: remedies.length > 0 ? remedies.join(' ') : 'Change the sandbox, or use an engine that supports it.',
  });
}

/** The optional features of `spec` that this engine does not provide. */
export function unmetWishes(spec: Pick<ContainerSpec, 'runtime'>, capabilities: Capabilities): string[] {
  const obstacle = filterObstacle(spec, capabilities);
  return obstacle === undefined ? [] : [`a filter of system calls: ${obstacle}`];
}

function unmetDemands(spec: ContainerSpec, capabilities: Capabilities, name: string | undefined): Lack[] {
  const { limits, ...engine } = capabilities;
  const lacks: Lack[] = [];
  const lack = (what: string, remedy?: string) => lacks.push({ what, ...(remedy && { remedy }) });
  if (engine.os !== 'linux') lack(`Linux containers (it runs ${engine.os})`);
  const isUnknown = spec.runtime !== undefined && !engine.runtimes.includes(spec.runtime);
  if (!ownMachines.some((machine) => machine === engine.arch))
    lack(`Offsite's own programs for ${engine.arch} (there are some for ${ownMachines.join(' and ')})`);
  if (isUnknown) {
    const known = engine.runtimes.join(', ');
    lack(`the runtime ${spec.runtime} (it knows ${known})`, unknownRuntime(capabilities));
  }
  if (!limits.memory) lack('a memory limit');
  if (!limits.swap) lack('a swap limit (kernel option swapaccount=1)');
  if (!limits.pids) lack('a limit on processes');
  if (!limits.cpu) lack('a limit on processors');
  if (spec.filter !== 'if-available' && !isUnknown) {
    for (const wish of unmetWishes(spec, capabilities)) lack(wish, noFilter(spec, capabilities, name));
  }
  if (spec.cpus > engine.cpus) lack(`${spec.cpus} processors (it has ${engine.cpus})`);
  if (spec.memoryBytes > engine.memoryBytes)
    lack(`${mebibytes(spec.memoryBytes)} of memory (it has ${mebibytes(engine.memoryBytes)})`);
  if (spec.security === 'strict' && isRoot(spec.user)) lack('the strict profile for root: name another user');
  return lacks;
}

function unknownRuntime({ product }: Capabilities): string {
  return product === 'Podman'
    ? 'Podman runs all containers with `runtime` of its containers.conf: remove `runtime` from the sandbox.'
    : "Add it to `runtimes` in the engine's daemon.json and restart the engine, or remove `runtime` from the sandbox.";
}

/** Machines with an NVIDIA GPU often have a default runtime of their own, next to runc. */
function noFilter({ runtime }: ContainerSpec, capabilities: Capabilities, name = 'NAME'): string {
  const setting = (text: string) => `sandboxes: { ${name}: { ${text} } }`;
  const without = `${setting('seccomp: if-available')} does without the filter`;
  const plain = runtime === undefined ? otherPlainRuntime(capabilities) : undefined;
  if (plain === undefined) return `In offsite.yaml, ${without}.`;
  return (
    `In offsite.yaml, write ${setting(`runtime: ${plain}`)}; ${without}. ` +
    `Or set "default-runtime": "${plain}" in the engine's daemon.json.`
  );
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}
