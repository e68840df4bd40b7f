import { expect, test } from 'vitest';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { credentialNames } from '../../src/trial/prepare/credentials.ts';
import { hostEnvironmentOf, passedEnvironment } from '../../src/trial/prepare/environment.ts';

const config = ConfigFile.parse({
  service: { url: 'https://evals.example', apiKeyEnv: 'SERVICE_KEY' },
  models: {
    small: { wire: 'openai-chat', baseUrl: 'https://models.example/v1', apiKeyEnv: 'MODEL_KEY' },
    open: { wire: 'openai-chat', baseUrl: 'https://models.example/v1' },
    told: { scripted: 'turns.yaml' },
  },
});
const variables = {
  MODEL_KEY: 'sk-1',
  COPY: 'sk-1',
  SERVICE_KEY: 'ofs_1234567',
  HEADER: `Basic ${Buffer.from('user:ofs_1234567').toString('base64')}`,
  PATH: '/bin',
  TEAM: 'blue',
  TOKEN: 't',
};
const host = hostEnvironmentOf(config, variables);
const passed = (...passEnv: string[]) => passedEnvironment({ name: 'local', passEnv }, host);

test('a sandbox gets of the host what it names, and nothing else', () => {
  expect(passed()).toEqual({});
  // Its author's own decision, whatever the name looks like.
  expect(passed('TEAM', 'TOKEN')).toEqual({ TEAM: 'blue', TOKEN: 't' });
});

test('a name that the host does not have is not passed', () => {
  expect(passed('TEAM', 'MISSING')).toEqual({ TEAM: 'blue' });
});

test('the names of all credentials are known: the service’s, each model’s, and ours by default', () => {
  expect([...credentialNames(config)].sort()).toEqual(['MODEL_KEY', 'OFFSITE_API_KEY', 'SERVICE_KEY']);
});

test.each(['MODEL_KEY', 'SERVICE_KEY', 'OFFSITE_API_KEY'])(
  '%s is refused, since it is a key of ours',
  (name) => {
    expect(() => passed(name)).toThrow(expect.objectContaining({ code: 'PASS_ENV_REFUSED', kind: 'input' }));
  },
);

test('a key is refused under another name too, and not shown', () => {
  expect(() => passed('COPY')).toThrow(/COPY/);
  expect(() => passed('COPY')).not.toThrow(/sk-1/);
});

test('a variable that holds a key among other things is refused', () => {
  expect(() => passed('HEADER')).toThrow(
    expect.objectContaining({ code: 'PASS_ENV_REFUSED', kind: 'input' }),
  );
});

test('what decides how programs run is refused', () => {
  for (const name of ['PATH', 'HOME', 'LD_PRELOAD', 'NODE_OPTIONS'])
    expect(() => passed(name)).toThrow(/decides/);
});
