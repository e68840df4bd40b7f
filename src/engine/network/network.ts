import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { abortable, startDeadline } from '../../base/deadline.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { serviceNetworks } from '../../bounds/suite.ts';
import type { ContainerSpec } from '../container/container-spec.ts';
import type { Container } from '../container.ts';
import { type Capabilities, plainRuntimes } from '../port/engine-port.ts';

/** Makes a bridge. Then it adds to it each interface whose name it reads, and prints the name. */
const hubScript = `set -e
ip link add hub type bridge
ip link set hub up
echo hub
while read -r name; do ip link set "$name" master hub up && echo "$name"; done
exec sleep infinity`;

/**
 * Makes a pair of interfaces. One stays here; the other moves to the network namespace of process 1, which is
 * the hub's.
 */
const memberScript = `set -e
interface=$1 address=$2 peer=$3
ip link add "$interface" type veth peer name "$peer" netns 1
ip address add "$address/24" dev "$interface"
ip link set lo up
ip link set "$interface" up
echo "$peer"
exec sleep infinity`;

export interface NetworkRequest {
  /** Id of an image with a shell and `ip` of iproute2. */
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
  const hub = await startProgram(parts, request, { script: hubScript, says: 'hub', network: 'none' }, signal);
  const members = new Set<Container>();
  let count = 0;
  return {
    async join({ address, hostName, network, hosts }, joining) {
      count += 1;
      const peer = `member${count}`;
      // In an `open` network, eth0 is the interface to the engine's own network.
      const words = [network === 'open' ? 'eth1' : 'eth0', address, peer];
      const script = { script: memberScript, words, says: peer, processesOf: hub.container.id };
      const member = { ...script, network, hostName, ...(network === 'open' && { hosts }) };
      const { container } = await startProgram(parts, request, member, joining);
      try {
        await hub.does(() => hub.stdin.write(`${peer}\n`), peer, joining);
      } catch (error) {
        await container[Symbol.asyncDispose]();
        throw error;
      }
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
      await Promise.all([hub.container, ...members].map((container) => container[Symbol.asyncDispose]()));
    },
  };
}

/** A script that runs in a container of its own. */
interface LinkProgram {
  readonly container: Container;
  readonly stdin: Duplex;
  /**
   * Resolves when the program prints `line`, which tells that it has done what `begin` asks for. Throws
   * infrastructure errors.
   */
  does(begin: (signal: AbortSignal) => unknown, line: string, signal: AbortSignal): Promise<void>;
}

interface LinkScript extends Pick<ContainerSpec, 'network' | 'hostName' | 'hosts'> {
  script: string;
  /** Its arguments. */
  words?: readonly string[];
  /** The line that it prints when it has set up its part. */
  says: string;
  processesOf?: string;
}

/** Starts the script, and waits until it has set up its part. */
async function startProgram(
  { createContainer, capabilities, clock }: NetworkParts,
  { imageId, labels }: NetworkRequest,
  { script, words = [], says, processesOf, ...more }: LinkScript,
  signal: AbortSignal,
): Promise<LinkProgram> {
  const spec: ContainerSpec = {
    imageId,
    labels,
    ...more,
    program: ['/bin/sh', '-c', script, 'sh', ...words],
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
    const program = await programOf(container, clock, signal);
    await program.does((starting) => container.start(starting), says, signal);
    return program;
  } catch (error) {
    await container[Symbol.asyncDispose]();
    throw error;
  }
}

async function programOf(container: Container, clock: Clock, attaching: AbortSignal): Promise<LinkProgram> {
  let said = '';
  const onStderr = (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(-serviceNetworks.bytes.words);
  };
  const stdio = await container.attach({ onStderr, signal: attaching });
  const awaited = new Map<string, () => void>();
  let rest = '';
  stdio.on('data', (chunk: Buffer) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = (lines.pop() ?? '').slice(-serviceNetworks.bytes.words);
    for (const line of lines) awaited.get(line)?.();
  });
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  stdio.on('error', (error) => ended.reject(notMade(messageOf(error))));
  stdio.on('close', () => ended.reject(notMade(said.trim() || 'its program ended')));
  return {
    container,
    stdin: stdio,
    async does(begin, line, signal) {
      const ms = serviceNetworks.time.start;
      const late = () => notMade(said.trim() || `nothing for ${ms / 1000} s`);
      using deadline = startDeadline(clock, ms, [signal], late);
      const printed = new Promise<void>((resolve) => awaited.set(line, resolve));
      const done = async () => {
        await begin(deadline.signal);
        await printed;
      };
      await abortable(Promise.race([done(), ended.promise]), deadline.signal);
    },
  };
}

function notMade(why: string): OffsiteError {
  return infrastructureError('NETWORK_NOT_MADE', `The network of a trial was not made: ${why}`, {
    hint: 'The kernel must offer the interfaces veth and bridge, and the image offsite/base has the program ip.',
  });
}
