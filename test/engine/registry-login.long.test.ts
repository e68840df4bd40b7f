import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loginFor } from '../../src/engine/pull/obtain-image.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-login-'));
  const auth = (user: string) => ({ auth: Buffer.from(`${user}:secret`).toString('base64') });
  const auths = { 'https://index.docker.io/v1/': auth('hub'), 'registry.example': auth('example') };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ auths }));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function userFor(image: string): Promise<string | undefined> {
  const login = await loginFor(image, { DOCKER_CONFIG: folder });
  return login && 'username' in login ? login.username : undefined;
}

describe('the login for a registry', () => {
  test('goes to that registry', async () => {
    for (const image of ['x', 'me/x:1', 'docker.io/me/x', 'index.docker.io/me/x', 'me/registry.example/x'])
      expect([image, await userFor(image)]).toEqual([image, 'hub']);
    expect(await userFor('registry.example/me/x')).toBe('example');
  });

  test.each([
    // Engines look for this one in the machine's own domain.
    'EVIL/x',
    'evil.example/x',
    'evil.example/docker.io/x',
    'docker.io.evil.example/x',
    'docker.io:5000/x',
    'registry.example:5000/x',
    'registry.example.evil.example/x',
    'registry.example@evil.example/x',
    'localhost/x',
    '[::1]/x',
  ])('never to another one with a similar name: %s', async (image) => {
    expect(await loginFor(image, { DOCKER_CONFIG: folder })).toBeUndefined();
  });
});
