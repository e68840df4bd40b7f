import { allow, equals, masked, type Rule, refuse } from './rule.ts';

const families = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const types = { stream: 1, datagram: 2 } as const;
/** The bits of a socket's type, without its flags (SOCK_NONBLOCK, SOCK_CLOEXEC). */
const typeBits = 0xf;
/** 0 is the default protocol: TCP for streams, UDP for datagrams. */
const protocols = {
  stream: [0, 6],
  datagram: { inet: [0, 17, 1], inet6: [0, 17, 58] },
} as const;

const isFamily = (family: number) => equals(0, family);
const isType = (type: number) => masked(1, typeBits, type);
const isProtocol = (protocol: number) => equals(2, protocol);

const streamsOver = (family: 'inet' | 'inet6'): Rule[] =>
  protocols.stream.map((protocol) =>
    allow(['socket'], isFamily(families[family]), isType(types.stream), isProtocol(protocol)),
  );

const datagramsOver = (family: 'inet' | 'inet6'): Rule[] =>
  protocols.datagram[family].map((protocol) =>
    allow(['socket'], isFamily(families[family]), isType(types.datagram), isProtocol(protocol)),
  );

/**
 * The sockets that a sandbox may create: families unix, inet, inet6 and netlink. For inet and inet6 only TCP,
 * UDP and echo (ping): other types or protocols make the kernel load modules that are rarely reviewed. For
 * netlink only what lists interfaces and routes. For any other family the call fails as if the kernel did not
 * know the family, which programs can handle.
 */
export const sandboxSockets: readonly Rule[] = [
  allow(['socket'], isFamily(families.unix)),
  ...(['inet', 'inet6'] as const).flatMap((family) => [...streamsOver(family), ...datagramsOver(family)]),
  allow(['socket'], isFamily(families.netlink), isProtocol(0)),
  refuse('EPROTONOSUPPORT', ['socket'], isFamily(families.netlink), {
    index: 2,
    op: 'SCMP_CMP_NE',
    value: 0,
  }),
  ...otherFamilies(Object.values(families)),
  allow(['socketpair'], isFamily(families.unix)),
  refuse('EAFNOSUPPORT', ['socketpair'], { index: 0, op: 'SCMP_CMP_NE', value: families.unix }),
];

/** Only TCP over IPv4. */
export const programSockets: readonly Rule[] = [...streamsOver('inet'), ...otherFamilies([families.inet])];

/**
 * Refuses every family but `known`. A rule cannot have two conditions on one argument, so the gaps are listed
 * one by one.
 */
function otherFamilies(known: readonly number[]): Rule[] {
  const last = Math.max(...known);
  const gaps = Array.from({ length: last }, (_, family) => family).filter(
    (family) => !known.includes(family),
  );
  return [
    ...gaps.map((family) => refuse('EAFNOSUPPORT', ['socket'], isFamily(family))),
    refuse('EAFNOSUPPORT', ['socket'], { index: 0, op: 'SCMP_CMP_GT', value: last }),
  ];
}
