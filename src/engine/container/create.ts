import { OffsiteError } from '../../offsite-error.ts';
import type { Capabilities } from '../capabilities.ts';
import { assertEnforceable } from '../capabilities.ts';
import type { EngineClient } from '../connection/engine-client.ts';
import { ownershipLabels } from '../labels.ts';
import { type ContainerSpec, hostConfig } from './container-spec.ts';
import { hostName } from './hosts-file.ts';
import { INIT_COMMAND } from './init-command.ts';
import { removeContainer } from './remove.ts';

export interface CreateOptions {
  name?: string;
  signal?: AbortSignal | undefined;
}

/**
 * Creates a container and resolves with its id. One round trip; it does not run yet.
 * A `name` is unique on the engine: where it is taken, the answer is 409. Throws when the engine cannot enforce what the spec asks for, be it known before or said by the engine's warnings.
 */
export async function createFromSpec(
  client: EngineClient,
  capabilities: Capabilities,
  instance: string,
  spec: ContainerSpec,
  { name, signal }: CreateOptions = {},
): Promise<string> {
  assertEnforceable(spec, capabilities);
  const created = await client.call(
    'creating a container',
    (abortSignal) =>
      // Not dockerode's own method, which drops the warnings.
      client.dial<{ Id: string; Warnings?: string[] | null }>({
        method: 'POST',
        path: name === undefined ? '/containers/create?' : `/containers/create?name=${name}`,
        expected: [200, 201],
        body: {
          Image: spec.imageId,
          Entrypoint: spec.program ?? INIT_COMMAND,
          Cmd: [],
          ...(spec.program !== undefined && { OpenStdin: true, StdinOnce: true, AttachStdin: true }),
          WorkingDir: spec.workingDir,
          // The runtime's own empty namespace, with nothing but its loopback. `NetworkMode: none` alone has the engine
          // set up a network of no members, which doubles the time of a start (180 instead of 85 ms).
          // Who shares a network shares its name.
          ...(typeof spec.network === 'string' && { Hostname: hostName }),
          NetworkDisabled: spec.network === 'none',
          Labels: ownershipLabels(
            { instance, role: 'container', createdAt: client.clock.now() },
            spec.labels,
          ),
          // Init ignores the polite signal: an engine that is stopped need not wait its usual ten seconds.
          StopTimeout: 1,
          // An image's health check would run in the sandbox.
          Healthcheck: { Test: ['NONE'] },
          HostConfig: hostConfig(spec, capabilities),
          ...(spec.user === undefined ? {} : { User: spec.user }),
        },
        abortSignal,
      }),
    { signal },
  );
  const warnings = created.Warnings ?? [];
  if (warnings.length === 0) return created.Id;
  await removeContainer(client, created.Id);
  throw new OffsiteError(`The engine cannot enforce a limit: ${warnings.join(' ')}`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
    hint: 'Ask for less, or use an engine that supports it.',
  });
}
