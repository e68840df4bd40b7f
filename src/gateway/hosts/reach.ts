import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { abortable } from '../../abortable.ts';
import { hostConnections } from '../../bounds/sandbox.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { messageOf } from '../../offsite-error.ts';
import { canonical, isPublic } from '../../suite/hosts/addresses.ts';
import type { Authority } from '../../suite/hosts/authority.ts';
import type { AllowList } from '../../suite/hosts/host-pattern.ts';
import { GatewayRefusal } from '../refusal.ts';
import type { Network } from './network.ts';

export interface ReachParts {
  allowed: AllowList;
  network: Network;
  clock: Clock;
}

/**
 * Connects to a host of the allow-list. Looks up its name once, here, and connects to an address that was
 * found then and checked: a later change of the DNS record does not matter. Throws a {@link GatewayRefusal}:
 * 403 if the host may not be reached, 502 if it cannot.
 */
export async function reach(
  { allowed, network, clock }: ReachParts,
  authority: Authority,
  signal: AbortSignal,
): Promise<Socket> {
  const { host, port } = authority;
  if (!allowed.allows(authority)) {
    throw new GatewayRefusal(403, 'HOST_NOT_ALLOWED', `this sandbox may not reach ${host} port ${port}`, {
      hint: 'Name it under hosts of the sandbox in offsite.yaml.',
    });
  }
  using limit = startDeadline(
    clock,
    hostConnections.time.reach,
    [signal],
    () => new GatewayRefusal(504, 'HOST_TIMEOUT', `${host} port ${port} did not answer`),
  );
  const found = authority.address ? [host] : await resolve(network, host, limit.signal);
  const named = (address: string) => allowed.allows({ host: canonical(address), port, address: true });
  const permitted = found.filter((address) => isIP(address) !== 0 && (isPublic(address) || named(address)));
  if (permitted.length === 0) {
    throw new GatewayRefusal(
      403,
      'ADDRESS_NOT_ALLOWED',
      `${host} resolves to an address that is not public`,
      {
        hint: 'Name private, loopback or link-local addresses under hosts of the sandbox in offsite.yaml.',
      },
    );
  }
  const failures: string[] = [];
  for (const address of permitted) {
    try {
      return await network.connect({ address, port }, limit.signal);
    } catch (error) {
      limit.signal.throwIfAborted();
      failures.push(messageOf(error));
    }
  }
  throw new GatewayRefusal(502, 'HOST_UNREACHABLE', failures.join('; '));
}

async function resolve(network: Network, host: string, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted();
  try {
    return await abortable(network.lookup(host), signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new GatewayRefusal(502, 'HOST_NOT_FOUND', `the name ${host} cannot be looked up`, { cause });
  }
}
