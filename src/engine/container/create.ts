import { OffsiteError } from '../../offsite-error.ts';
import { assertEnforceable } from '../capabilities.ts';
import { ownershipLabels } from '../labels.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { requestOf } from './container-request.ts';
import type { ContainerSpec } from './container-spec.ts';
import { removeContainer } from './remove.ts';

export interface CreateOptions {
  name?: string;
  signal?: AbortSignal | undefined;
}

/**
 * Creates a container, which does not run yet, and resolves with its id. One round trip. A `name` is unique
 * on the engine: if it is taken, this throws a `conflict`. Throws if the engine cannot enforce the spec,
 * whether that is known in advance or only from the engine's warnings.
 */
export async function createFromSpec(
  port: EnginePort,
  capabilities: Capabilities,
  instance: string,
  spec: ContainerSpec,
  { name, signal }: CreateOptions = {},
): Promise<string> {
  assertEnforceable(spec, capabilities);
  const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() }, spec.labels);
  const request = { ...requestOf(spec, capabilities), name, labels };
  const { id, warnings } = await port.containers.create(request, signal);
  if (warnings.length === 0) return id;
  await removeContainer(port, id);
  throw new OffsiteError(`The engine cannot enforce a limit: ${warnings.join(' ')}`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
    hint: 'Ask for less, or use an engine that supports it.',
  });
}
