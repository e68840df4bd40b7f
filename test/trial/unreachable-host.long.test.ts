import { expect, test } from 'vitest';
import { unreachableHost, unreachableText } from '../../src/trial/prepare/image-parts.ts';

test.each([
  [
    'npm error request to https://packages.example/is-odd failed, reason: getaddrinfo ENOTFOUND packages.example',
    'packages.example',
  ],
  ['npm error FetchError: connect ECONNREFUSED 127.0.0.1:4873', '127.0.0.1:4873'],
  [
    "WARNING: Retrying after connection broken by 'NewConnectionError(\"HTTPSConnection(host='index.example', port=443)\")'\n" +
      "ERROR: HTTPSConnectionPool(host='index.example', port=443): Max retries exceeded with url: /simple/",
    'index.example',
  ],
  ['error: Failed to fetch: `https://index.example/simple/six/`', 'index.example'],
  ["Err:1 http://deb.example stable InRelease\n  Could not resolve 'deb.example'", 'deb.example'],
  ['curl: (6) Could not resolve host: example.test', 'example.test'],
  ['curl: (7) Failed to connect to 10.0.0.1 port 80', '10.0.0.1'],
  [
    "fatal: unable to access 'https://git.example/a.git/': Could not resolve host: git.example",
    'git.example',
  ],
  ['go: dial tcp: lookup modules.example: no such host', 'modules.example'],
])('of a script that printed %j, the host that could not be reached is %s', (output, host) => {
  expect(unreachableHost(output)).toBe(host);
  expect(unreachableText(`before\n${output}\nafter`)).toContain(`it could not reach ${host}: `);
});

test('a script that failed for another reason is not about the network', () => {
  expect(unreachableText('error: could not compile\nE: Unable to locate package nope')).toBe('');
});
