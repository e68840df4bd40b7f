import { BlockList, isIPv6 } from 'node:net';

/**
 * Networks that are not the public Internet (IANA's special-purpose registries), and addresses where clouds
 * serve their credentials.
 */
const notPublic = {
  ipv4: [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/3',
    // Azure's own services on every virtual machine.
    '168.63.129.16/32',
  ],
  ipv6: [
    // Unspecified, loopback, and IPv4 inside IPv6: compatible, mapped, translated, 6to4, Teredo.
    '::/96',
    '::ffff:0:0/96',
    '::ffff:0:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2001::/32',
    '2002::/16',
    '100::/64',
    '2001:db8::/32',
    '3fff::/20',
    'fc00::/7',
    'fe80::/9',
    'ff00::/8',
  ],
} as const;

/** Whether an address (no brackets, no zone) belongs to the public Internet. */
export function isPublic(address: string): boolean {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  const refused = new BlockList();
  for (const subnet of notPublic[family]) {
    const [network = '', length] = subnet.split('/');
    refused.addSubnet(network, Number(length), family);
  }
  return !address.includes('%') && !refused.check(address, family);
}

/** One spelling for each address. */
export function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : address;
}
