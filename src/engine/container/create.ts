import { randomBytes } from 'node:crypto';
import { OffsiteError } from '../../base/offsite-error.ts';
import { assertEnforceable } from '../capabilities.ts';
import { ownershipLabels } from '../labels.ts';
import type { OwnFiles } from '../own-files/volume.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { requestOf } from './container-request.ts';
import type { ContainerSpec } from './container-spec.ts';
import type { CreateWithin } from './disk-quota.ts';
import { removeContainer } from './remove.ts';
import type { ProbeRuntime, RuntimeFacts } from './runtime-probe.ts';

export interface CreateOptions {
  name?: string;
  signal?: AbortSignal | undefined;
}

/** What is known of a new container. */
interface Created {
  id: string;
  runtime: RuntimeFacts;
  /** Undefined for a container that is no sandbox, or a machine that Offsite has no files for. */
  own: OwnFiles | undefined;
  /** Whether the engine's storage itself limits what it takes. */
  hasQuota: boolean;
}

interface CreateParts {
  create: CreateWithin;
  port: EnginePort;
  capabilities: Capabilities;
  instance: string;
  probe: ProbeRuntime;
  /** Undefined for a machine that Offsite has no files for. */
  ownFiles: OwnFiles | undefined;
}

/**
 * Creates a container, which does not run yet, and resolves with its id and what is known of its runtime. One
 * round trip. A `name` is unique on the engine: if it is taken, this throws a `conflict`. Throws if the
 * engine cannot enforce the spec, whether that is known in advance or only from the engine's warnings.
 */
export async function createFromSpec(
  { port, create, capabilities, instance, probe, ownFiles }: CreateParts,
  spec: ContainerSpec,
  { name, signal }: CreateOptions,
): Promise<Created> {
  assertEnforceable(spec, capabilities);
  const isSandbox = spec.program === undefined && spec.service === undefined;
  const own = isSandbox ? ownFiles : undefined;
  const runtime = await probe(spec);
  const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() }, spec.labels);
  const made = requestOf(spec, capabilities, { ...runtime, init: own?.init });
  const mounts = [...(spec.mounts ?? []), ...(own ? [own.mount] : [])];
  const request = { ...made, mounts, name: name ?? nameOf(spec), labels };
  const quota = spec.diskGrows ? undefined : spec.diskBytes;
  const { id, warnings, hasQuota } = await create(request, quota, signal);
  if (warnings.length === 0) return { id, runtime, own, hasQuota };
  await removeContainer(port, id);
  throw new OffsiteError(`The engine cannot enforce a limit: ${warnings.join(' ')}`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
    hint: 'Ask for less, or use an engine that supports it.',
  });
}

/**
 * A name by which people recognize a container of a trial: its batch, its case, which trial it is, and an end
 * that no other container has. Undefined for a container of no batch.
 */
function nameOf({ labels = {}, program, service }: ContainerSpec): string | undefined {
  const { 'offsite.batch': batch, 'offsite.case': caseName, 'offsite.ordinal': ordinal } = labels;
  if (batch === undefined) return undefined;
  const role = program ? 'relay' : service ? 'service' : undefined;
  const parts = [batch.replace(/^batch_/, '').slice(0, 8), caseName?.slice(0, 40), ordinal, role];
  const end = randomBytes(4).toString('hex');
  return ['offsite', ...parts.filter((part) => part !== undefined), end].join('-').replace(/[^\w.-]+/g, '_');
}
