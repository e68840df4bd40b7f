import { readFileSync } from 'node:fs';
import { abortable } from '../../abortable.ts';
import { serviceNetworks } from '../../bounds/suite.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { ContainerSpec } from '../container/container-spec.ts';
import type { Container } from '../container.ts';
import type { Capabilities } from '../port/capabilities.ts';
import { plainRuntimes } from '../port/plain-runtimes.ts';

const program = readFileSync(new URL('./link.py', import.meta.url), 'utf8');

export interface NetworkRequest {
  /** Id of an image with Python 3. */
  imageId: string;
  labels: Readonly<Record<string, string>>;
}

export interface MemberRequest {
  /** An IPv4 address of 10.213.0.0/24 that no other member has. */
  address: string;
  hostName: string;
  /** What it has besides this network. */
  network: 'none' | 'open';
  /** Addresses by name, for an `open` network, whose members share one `/etc/hosts`. */
  hosts: Readonly<Record<string, string>>;
}

/** A network namespace on the network, for containers to share. It lasts until it is disposed. */
export interface NetworkMember extends AsyncDisposable {
  /** Use it as `network` of a container. */
  readonly network: { sharedWith: string };
}

/**
 * A network without a way out. The machine is not part of it: its bridge is in a network namespace of its
 * own, without an address, and only Offsite's own program runs there. So there is no gateway, and not even a
 * broadcast reaches the machine. (On the engine's own networks, even internal ones, a broadcast reaches it.)
 * There is no DNS either: names are in each member's `/etc/hosts`. It consists of containers alone, so that
 * removing them leaves nothing.
 */
export interface Network extends AsyncDisposable {
  /** Adds a member. Throws infrastructure errors. */
  join(member: MemberRequest, signal: AbortSignal): Promise<NetworkMember>;
}

export interface NetworkParts {
  createContainer(spec: ContainerSpec, signal?: AbortSignal): Promise<Container>;
  capabilities: Capabilities;
  clock: Clock;
}

/** Why containers of this engine cannot share a network of their own; undefined if they can. */
export function networkObstacle(
  { runtime }: Pick<ContainerSpec, 'runtime'>,
  { defaultRuntime, security }: Pick<Capabilities, 'defaultRuntime' | 'security'>,
): string | undefined {
  const name = runtime ?? defaultRuntime;
  if (!plainRuntimes.includes(name)) return `containers of the runtime ${name} use their own kind of network`;
  // With userns-remap, no container may change the network of another one.
  return security.userns ? 'the engine remaps the users of containers (userns-remap)' : undefined;
}

/** Opens a network without members. Throws infrastructure errors. */
export async function openNetwork(
  parts: NetworkParts,
  request: NetworkRequest,
  signal: AbortSignal,
): Promise<Network> {
  const hub = await startProgram(parts, request, { argv: ['hub'], network: 'none' }, signal);
  const members = new Set<Container>();
  let count = 0;
  return {
    async join({ address, hostName, network, hosts }, joining) {
      count += 1;
      // In an `open` network, eth0 is the interface to the engine's own network.
      const argv = ['member', network === 'open' ? 'eth1' : 'eth0', address, `member${count}`];
      const member = { argv, network, hostName, processesOf: hub.id, ...(network === 'open' && { hosts }) };
      const container = await startProgram(parts, request, member, joining);
      members.add(container);
      return {
        network: { sharedWith: container.id },
        async [Symbol.asyncDispose]() {
          await container[Symbol.asyncDispose]();
          members.delete(container);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([hub, ...members].map((container) => container[Symbol.asyncDispose]()));
    },
  };
}

interface LinkProgram extends Pick<ContainerSpec, 'network' | 'hostName' | 'hosts'> {
  argv: readonly string[];
  processesOf?: string;
}

/** Starts the program in a container of its own, and waits until it has done its work. */
async function startProgram(
  { createContainer, capabilities, clock }: NetworkParts,
  { imageId, labels }: NetworkRequest,
  { argv, processesOf, ...more }: LinkProgram,
  signal: AbortSignal,
): Promise<Container> {
  const spec: ContainerSpec = {
    ...{ imageId, labels, ...more },
    program: ['python3', '-I', '-c', program, ...argv],
    networkAdmin: { processesOf },
    security: 'compatible',
    user: '0:0',
    memoryBytes: serviceNetworks.bytes.memory,
    cpus: Math.min(1, capabilities.cpus),
    pids: 8,
    workingDir: '/',
    // It runs only Offsite's own code.
    filter: 'if-available',
  };
  const container = await createContainer(spec, signal);
  try {
    await ready(container, clock, signal);
    return container;
  } catch (error) {
    await container[Symbol.asyncDispose]();
    throw error;
  }
}

async function ready(container: Container, clock: Clock, signal: AbortSignal): Promise<void> {
  const ms = serviceNetworks.time.start;
  using deadline = startDeadline(clock, ms, [signal], () => notMade(`nothing for ${ms / 1000} s`));
  let said = '';
  const onStderr = (bytes: Buffer) => {
    said = `${said}${bytes}`.slice(-serviceNetworks.bytes.words);
  };
  const stdio = await container.attach({ onStderr, signal: deadline.signal });
  await container.start(deadline.signal);
  const done = Promise.withResolvers<void>();
  let printed = '';
  stdio.on('data', (chunk: Buffer) => {
    printed = `${printed}${chunk}`.slice(-serviceNetworks.bytes.words);
    if (printed.includes('ready\n')) done.resolve();
  });
  stdio.on('error', (error) => done.reject(notMade(messageOf(error))));
  stdio.on('close', () => done.reject(notMade(said.trim() || 'its program ended')));
  await abortable(done.promise, deadline.signal);
}

function notMade(why: string): OffsiteError {
  return new OffsiteError(`The network of a trial was not made: ${why}`, {
    code: 'NETWORK_NOT_MADE',
    kind: 'infrastructure',
    hint: 'The kernel must offer the interfaces veth and bridge, and the image offsite/base needs Python 3.',
  });
}
