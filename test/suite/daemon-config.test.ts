import { expect, test } from 'vitest';
import { type Config, ConfigFile } from '../../src/suite/config-file.ts';
import { wrongDaemonProfiles } from '../../src/suite/planned-variant.ts';
import { yamlFileOf } from '../../src/suite/yaml-file.ts';

const file = 'offsite.yaml';
const read = (text: string) => yamlFileOf(text, { file, schema: ConfigFile }).value;

test('who gives `listen` a bare port is told both forms that it takes', () => {
  expect(() => read('daemon: { listen: 9321 }')).toThrow(
    'daemon.listen: expected an address such as 127.0.0.1:9320, or a port in quotes, "9320"',
  );
  expect(read('daemon: { listen: "9321" }').daemon.listen).toBe('9321');
});

test('a misspelt harness or profile of `daemon.profiles` is named with the one that was meant', () => {
  const wrong = (profiles: string) => {
    const config = read(`profiles: { slow: { run: "true" } }\ndaemon: { profiles: { ${profiles} } }`);
    return wrongDaemonProfiles({ ...config, file } as Config, [{ name: 'command' }, { name: 'bash' }]);
  };
  expect(wrong('command: slow')).toEqual([]);
  expect(String(wrong('comand: slow'))).toContain('"comand" is not a harness; did you mean "command"?');
  expect(String(wrong('command: slwo'))).toContain('"slwo" is not a profile of offsite.yaml; did you mean');
});
