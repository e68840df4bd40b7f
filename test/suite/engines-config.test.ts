import { expect, test } from 'vitest';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { configuredEngines } from '../../src/suite/engines-config.ts';
import { yamlFileOf } from '../../src/suite/yaml-file.ts';

const read = (text: string) => yamlFileOf(text, { file: 'offsite.yaml', schema: ConfigFile }).value;

test('engines are called by the host or the socket of their addresses, unless they have names', () => {
  const config = read(
    'engines: [local, ssh://me@gpu-1, unix:///run/user/1000/podman/podman.sock, { name: big, host: tcp://10.0.0.2:2376 }]',
  );
  expect(configuredEngines(config).map(({ name, host }) => [name, host])).toEqual([
    ['local', undefined],
    ['gpu-1', 'ssh://me@gpu-1'],
    ['podman', 'unix:///run/user/1000/podman/podman.sock'],
    ['big', 'tcp://10.0.0.2:2376'],
  ]);
});

test.each([
  ['engines: [local, ftp://gpu-1]', '1:18: engines[1]: expected local, ssh://'],
  ['engines: ["npipe:////./pipe/docker_engine"]', '1:11: engines[0]: expected local, ssh://'],
  ['engines: [gpu-1]', '1:11: engines[0]: expected local, ssh://'],
  ['engines: [3]', '1:11: engines[0]: expected an address or {name, host, labels, …}'],
  [
    'engines:\n  - ssh://gpu-1\n  - ssh://me@gpu-1',
    '3:5: engines[1]: an engine before this one is called gpu-1',
  ],
  ['engines: ["unix:///run/a b.sock"]', '1:11: engines[0]: give this engine a `name`'],
  ['engine: { host: gpu-1 }', '1:11: engine.host: expected an address: ssh://'],
  ['engine: ssh://gpu-1', '1:1: engine: expected {host: address}'],
  ['engine: { host: ssh://a }\nengines: [local]', '2:1: engines: use either engine or engines'],
])('%j is refused where the mistake is', (text, message) => {
  expect(() => read(text)).toThrow(`offsite.yaml:${message}`);
});
