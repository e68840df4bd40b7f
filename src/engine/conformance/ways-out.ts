import type { Probe } from './testbed.ts';

/** The names of a container's network interfaces, sorted. Not every kernel has `/sys/class/net`. */
export async function interfacesOf(container: Probe): Promise<string[]> {
  const { stdout } = await container.shell("awk -F: 'NR > 2 { print $1 }' /proc/net/dev");
  return stdout.split(/\s+/).filter(Boolean).toSorted();
}

/** An address of each family that is only for examples. */
const foreignAddresses = ['192.0.2.1', '2001:db8::1'] as const;

/** To connect a datagram socket looks up the route and sends nothing. Its port is that of `discard`. */
const lookUpRoutes = `
import socket
for address in ${JSON.stringify(foreignAddresses)}:
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
        print(address)
    except OSError:
        pass
`;

/** The addresses of others, one of each family, to which a container has a route. Sends no packet. */
export async function waysOut(container: Probe): Promise<string[]> {
  const { stdout } = await container.prepare('python3 -c "$LOOK_UP_ROUTES"', {
    env: { LOOK_UP_ROUTES: lookUpRoutes },
  });
  return stdout.split('\n').filter(Boolean);
}
