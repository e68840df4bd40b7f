import type { PlannedService } from '../../suite/services.ts';

/**
 * Addresses on the network of a trial's services. Every trial has the same ones, because no two networks are
 * connected.
 */
const network = '10.213.0';

/** The addresses of sandboxes are above those of services, of which there are few. */
const firstSandbox = 100;

/** The agent's sandbox. */
export const sandboxAddress = `${network}.${firstSandbox}`;

/** The address of the service at an index. */
export function addressOf(index: number): string {
  return `${network}.${2 + index}`;
}

/** The address of the fresh sandbox of this number, from 0. A trial is graded a few times. */
export function graderAddress(count: number): string {
  return `${network}.${firstSandbox + 1 + (count % 100)}`;
}

/** The addresses of services by all their names. */
export function namesOf(
  services: readonly Pick<PlannedService, 'name' | 'aliases'>[],
): Record<string, string> {
  return Object.fromEntries(
    services.flatMap(({ name, aliases }, index) =>
      [name, ...aliases].map((each) => [each, addressOf(index)]),
    ),
  );
}
