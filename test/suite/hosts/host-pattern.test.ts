import { expect, test } from 'vitest';
import { allowList, isPublic, permittedBy, readAuthority } from '../../../src/suite/hosts/host-pattern.ts';

const allows = (patterns: string[], asked: string) => {
  const authority = readAuthority(asked, 80);
  return authority !== undefined && allowList(patterns).allows(authority);
};

test.for([
  ['registry.example', ['registry.example', 'registry.example:443', 'REGISTRY.example.:443'], true],
  [
    'registry.example',
    ['registry.example:8080', 'a.registry.example', 'registry.example.evil', 'example'],
    false,
  ],
  ['registry.example:8080', ['registry.example:8080'], true],
  ['registry.example:8080', ['registry.example:443'], false],
  ['*.example', ['a.example', 'a.b.example:443'], true],
  ['*.example', ['example', 'aexample', 'a.example:22', 'a.example.evil', '.example'], false],
  ['*.example:22', ['a.example:22'], true],
  ['10.0.0.5', ['10.0.0.5', '10.0.0.5:443', '167772165', '0xa.5'], true],
  ['10.0.0.5', ['10.0.0.6', '10.0.0.5:22'], false],
  ['[2001:db8::7]:8080', ['[2001:DB8:0::7]:8080'], true],
  ['::1', ['[::1]', '[0:0:0:0:0:0:0:1]:443'], true],
] as const)('%s: %s is %s', ([pattern, asked, allowed]) => {
  for (const one of asked) expect(allows([pattern], one), one).toBe(allowed);
});

test('an invalid host is refused in configuration and in requests', () => {
  for (const pattern of [
    '*',
    '',
    '*.',
    'a b',
    'https://a.example',
    '*.10.0.0.1',
    'a.example/x',
    'u@a.example',
    'a.*',
  ]) {
    expect(() => allowList([pattern]), pattern).toThrow(
      expect.objectContaining({ code: 'HOST_PATTERN_INVALID' }),
    );
  }
  const asked = [
    'good.example@evil.example:443',
    'a.example:0',
    'a.example:99999',
    '[::1',
    '',
    ':443',
    'a\\b:1',
    'a..b:1',
    '-a.b:1',
  ];
  for (const one of asked) expect(readAuthority(one, 80), one).toBeUndefined();
  expect(readAuthority('a.example', undefined)).toBeUndefined();
});

test('only addresses of the public Internet are public', () => {
  for (const address of ['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '2a00:1450::1']) {
    expect(isPublic(address), address).toBe(true);
  }
  for (const address of [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '100.100.100.200',
    '::',
    '::1',
    '::ffff:1.1.1.1',
    '::ffff:127.0.0.1',
    '::7f00:1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001::1',
    '2001:db8::1',
  ]) {
    expect(isPublic(address), address).toBe(false);
  }
});

test.for([
  [['registry.example'], 'registry.example', ['registry.example']],
  [['*.example'], 'Registry.example', ['registry.example']],
  [['*.example:8443', '*.example'], 'registry.example', ['registry.example:8443', 'registry.example']],
  [['*.example'], '*.sub.example', ['*.sub.example']],
  [['*.example'], '*.example', ['*.example']],
  [['*.example'], 'example', []],
  [['sub.example', 'a.sub.example'], '*.sub.example', []],
  [['*.sub.example'], '*.example', []],
  [['registry.example'], 'registry.example:80', ['registry.example:80']],
  [['registry.example'], 'registry.example:22', []],
  [['10.0.0.5', '*.example'], '10.0.0.5', ['10.0.0.5']],
  [['[2001:db8::7]:8080'], '2001:DB8::7', ['[2001:db8::7]:8080']],
  [['10.0.0.5'], '10.0.0.6', []],
  [[], 'registry.example', []],
] as const)('%s permits of %s: %s', ([patterns, asked, permitted]) => {
  expect(permittedBy(patterns, asked)).toEqual(permitted);
  // What is permitted is a part of what permits it.
  for (const pattern of permitted) expect(allows([...patterns], pattern.replace('*.', 'deep.'))).toBe(true);
});
