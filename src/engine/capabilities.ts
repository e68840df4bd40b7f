import { OffsiteError } from '../offsite-error.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { isRoot } from './container/is-root.ts';
import { filterObstacle } from './container/seccomp/filter.ts';
import type { Capabilities } from './port/capabilities.ts';
import { otherPlainRuntime } from './port/plain-runtimes.ts';

/**
 * Throws an input error that names everything that `spec` requires and this engine cannot provide. Nothing is
 * silently left out.
 */
export function assertEnforceable(spec: ContainerSpec, capabilities: Capabilities): void {
  const missing = unmetDemands(spec, capabilities);
  if (missing.length === 0) return;
  throw new OffsiteError(`This engine cannot provide what the sandbox requires: ${missing.join('; ')}`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'input',
    hint: 'Change the sandbox, or use an engine that supports it.',
  });
}

/** The optional features of `spec` that this engine does not provide. */
export function unmetWishes(spec: Pick<ContainerSpec, 'runtime'>, capabilities: Capabilities): string[] {
  const obstacle = filterObstacle(spec, capabilities);
  return obstacle === undefined ? [] : [`a filter of system calls: ${obstacle}`];
}

function unmetDemands(spec: ContainerSpec, capabilities: Capabilities): string[] {
  const { limits, ...engine } = capabilities;
  const missing: string[] = [];
  if (engine.os !== 'linux') missing.push(`Linux containers (it runs ${engine.os})`);
  if (spec.runtime !== undefined && !engine.runtimes.includes(spec.runtime)) {
    missing.push(`the runtime ${spec.runtime} (it knows ${engine.runtimes.join(', ')})`);
  }
  if (!limits.memory) missing.push('a memory limit');
  if (!limits.swap) missing.push('a swap limit (kernel option swapaccount=1)');
  if (!limits.pids) missing.push('a limit on processes');
  if (!limits.cpu) missing.push('a limit on processors');
  if (spec.filter !== 'if-available') {
    const wishes = unmetWishes(spec, capabilities);
    const plain = spec.runtime === undefined ? otherPlainRuntime(capabilities) : undefined;
    const others = plain === undefined ? '' : `one with runtime: ${plain} has it, `;
    missing.push(
      ...wishes.map((wish) => `${wish} (${others}a sandbox with seccomp: if-available does without)`),
    );
  }
  if (spec.cpus > engine.cpus) missing.push(`${spec.cpus} processors (it has ${engine.cpus})`);
  if (spec.memoryBytes > engine.memoryBytes) {
    missing.push(`${mebibytes(spec.memoryBytes)} of memory (it has ${mebibytes(engine.memoryBytes)})`);
  }
  if (spec.security === 'strict' && isRoot(spec.user))
    missing.push('the strict profile for root: name another user');
  return missing;
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}
